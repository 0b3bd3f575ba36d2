package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// TestMain makes the test binary a supervisor of no daemons at all, if that is what its arguments say.
func TestMain(m *testing.M) {
	if len(os.Args) != 3 || os.Args[1] != "run" {
		m.Run() // its result is the status
		return
	}
	err := runBooted(context.Background(), Folder(os.Args[2]), os.Stdout, func(_ context.Context, _ string, spec Spec, changed func(State) error) (*cluster, error) {
		c := &cluster{starter: proc.NewStarter()}
		c.Spec = spec
		var err error
		if c.Supervisor, err = proc.Identify(os.Getpid()); err == nil {
			err = changed(c.State)
		}
		return c, err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// Users come and go at about the pace at which unused clusters end, so that they meet in all states of its life.
func TestWhoeverHasALeaseHasACluster(t *testing.T) {
	useByMany(t, 2, func(ctx context.Context, f Folder, random *rand.Rand) error {
		first, err := f.Now(ctx)
		if err != nil {
			return err
		}
		pause(random)
		second, err := f.Now(ctx)
		if err == nil && first.Supervisor != second.Supervisor {
			err = fmt.Errorf("the supervisor changed from %v to %v", first.Supervisor, second.Supervisor)
		}
		return err
	})
}

func TestAClusterIsStartedAgainAfterItsSupervisorWasKilled(t *testing.T) {
	useByMany(t, 3, func(ctx context.Context, f Folder, random *rand.Rand) error {
		s, err := f.Now(ctx)
		if err != nil || random.IntN(3) > 0 {
			return nil // another user may have killed it
		}
		return s.Supervisor.Kill()
	})
}

// useByMany lets users use the cluster of one folder again and again, until it has been started so often that they have met
// its end from all sides.
func useByMany(t *testing.T, users int, use func(context.Context, Folder, *rand.Rand) error) {
	t.Helper()
	f := folder(t)
	seed := rand.Uint64()
	const enough, tooLong = 6, 2000
	var starts, uses atomic.Int32
	counted := func(context.Context) (string, error) {
		starts.Add(1)
		return os.Executable()
	}
	spec := func(context.Context) (Spec, error) { return Spec{Linger: time.Millisecond}, nil }
	var group sync.WaitGroup
	for i := range users {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		group.Go(func() {
			for starts.Load() < enough && uses.Add(1) < tooLong {
				lease, err := Acquire(t.Context(), f, counted, spec)
				if err != nil {
					t.Error(err)
					return
				}
				err = errors.Join(use(t.Context(), f, random), lease.Release())
				if err != nil {
					t.Error(err)
					return
				}
				pause(random)
			}
		})
	}
	group.Wait()
	t.Logf("seed %d: %d starts for %d uses", seed, starts.Load(), uses.Load())
	require.GreaterOrEqual(t, starts.Load(), int32(enough), "the cluster hardly ever ended")
	require.NoError(t, Down(t.Context(), f))
	require.NoDirExists(t, string(f))
}

// pause is part of the workload, not a wait for anything.
func pause(random *rand.Rand) { time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) }
