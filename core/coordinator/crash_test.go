package coordinator

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// crashSeed makes the same choices in every run; change it to see others.
const crashSeed = 20260901

// crash is what the machine has left, and what the job was told until then.
type crash struct {
	after string
	fsys  *memfs.FS
	told  *ledger
}

// The machine dies after each single step of a job's life, with nothing, some or all of the unsynced data on the disk.
func TestWhateverPointAJobIsKilledAtItGoesOn(t *testing.T) {
	t.Run("separate files", func(t *testing.T) { crashSweep(t, newLedger(), 1) })
	t.Run("packed", func(t *testing.T) {
		l := newLedger()
		l.packed = true
		crashSweep(t, l, 5)
	})
}

func crashSweep(t *testing.T, l *ledger, step int) {
	t.Helper()
	t.Logf("seed %d", crashSeed)
	percents := []int{0, 50, 100}
	crashes := map[int][]crash{}
	fsys := newFS(t)
	placeForeignFiles(t, fsys)
	var mu sync.Mutex // files are deleted in parallel
	fsys.OnMutation(func(m memfs.Mutation) {
		mu.Lock()
		defer mu.Unlock()
		told := l.clone()
		for _, percent := range percents {
			crashes[percent] = append(crashes[percent], crash{m.String(), fsys.CrashClone(memfs.CrashConfig{
				UnsyncedPercent: percent, Rand: rand.New(rand.NewPCG(crashSeed, uint64(1000*m.Number+percent))),
			}), told})
		}
	})
	l.live(t, fsys)
	fsys.OnMutation(nil)
	require.Equal(t, made{2, 9}, l.newest)
	require.NoError(t, l.verify(t, fsys))
	for _, percent := range percents {
		t.Run(fmt.Sprintf("unsynced=%d%%", percent), func(t *testing.T) {
			t.Parallel()
			require.Greater(t, len(crashes[percent]), 200)
			for i := 0; i < len(crashes[percent]); i += step * stride {
				c := crashes[percent][i]
				require.NoError(t, c.told.verify(t, c.fsys), "crash after %s", c.after)
			}
		})
	}
}
