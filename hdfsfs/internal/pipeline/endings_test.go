package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// promised is how long after its context's end a call may return.
const promised = 250 * time.Millisecond

// left counts what a test must not leave behind.
func left(t testing.TB) (goroutines, descriptors int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return runtime.NumGoroutine(), 0 // there is no /proc
	}
	require.NoError(t, err)
	return runtime.NumGoroutine(), len(entries)
}

// requireNothingLeft compares with what left has counted.
func requireNothingLeft(t testing.TB, goroutines, descriptors int) {
	t.Helper()
	var g, d int
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if g, d = left(t); g <= goroutines && d <= descriptors {
			return
		}
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines, %d before; %d descriptors, %d before\n%s", g, goroutines, d, descriptors, stacks[:runtime.Stack(stacks, true)])
}

func silent(s *session) { _, _ = io.Copy(io.Discard, s.r) }

func standing(s *session) {
	s.answer(wire.Status_SUCCESS, "")
	silent(s)
}

// brokenAfter is a pipeline that breaks after some packets.
func brokenAfter(packets int) func(*session) {
	return func(s *session) {
		if s.stands() {
			s.acknowledge(packets)
			_, _ = s.packet()
		}
	}
}

// hang is a state in which a writer waits for somebody.
type hang struct {
	what  string
	nodes int
	set   func(f *fakes, o *Options)
	says  string // the error, besides why the context has ended
}

func hangs() []hang {
	scripts := func(s ...func(*session)) func(*fakes, *Options) { return func(f *fakes, _ *Options) { f.serve = s } }
	calls := func(method string, s ...func(*session)) func(*fakes, *Options) {
		return func(f *fakes, _ *Options) { f.serve, f.hang[method] = s, true }
	}
	return []hang{
		{"a connection", 1, func(_ *fakes, o *Options) {
			o.Dialer = datanode.NewDialer(datanode.Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}})
		}, ""},
		{"the answer to a set-up", 1, scripts(silent), "had not acknowledged"},
		{"acknowledgements", 1, scripts(standing), "had not acknowledged"},
		{"the last acknowledgement", 1, scripts(func(s *session) {
			s.answer(wire.Status_SUCCESS, "")
			s.acknowledge(3)
			silent(s)
		}), "had not acknowledged"},
		{"addBlock", 1, calls("addBlock"), ""},
		{"abandonBlock", 2, calls("abandonBlock", brokenAfter(0)), "DataNode"},
		{"getAdditionalDatanode", 3, func(f *fakes, o *Options) {
			f.serve, f.hang["getAdditionalDatanode"], o.MinReplicas = []func(*session){brokenAfter(1)}, true, 3
		}, "DataNode"},
		{"updateBlockForPipeline", 3, calls("updateBlockForPipeline", brokenAfter(1)), "DataNode"},
		{"the answer to a recovery", 3, scripts(brokenAfter(1), silent), "DataNode"},
		{"updatePipeline", 3, calls("updatePipeline", brokenAfter(1)), "DataNode"},
		{"the copy of a block", 3, func(f *fakes, o *Options) {
			f.serve, f.spare, f.hang["transfer"], o.MinReplicas = []func(*session){brokenAfter(1)}, f.listen(99), true, 3
		}, "DataNode"},
		{"complete", 1, calls("complete"), ""},
		{"the replicas of the last block", 1, func(f *fakes, _ *Options) { f.incomplete = 1 << 30 }, "had not heard of the replicas"},
		{"nodes for a block", 1, func(f *fakes, _ *Options) { f.nobody = 1 << 30 }, ""},
		{"a node to restart", 1, func(f *fakes, _ *Options) {
			f.serve = []func(*session){func(s *session) {
				s.answer(wire.Status_SUCCESS, "")
				s.acknowledge(1)
				s.ack(wire.UnknownSeqno, wire.Status_OOB_RESTART)
			}}
		}, "OOB_RESTART"},
	}
}

func TestEveryWaitEndsWithItsContext(t *testing.T) {
	large, small := content(20<<10), content(3000)
	uses := map[string]func(*Writer) error{
		"Write": func(w *Writer) error { // more than the window
			_, err := w.Write(large)
			return errors.Join(err, w.Close())
		},
		"Sync": func(w *Writer) error {
			_, err := w.Write(small)
			return errors.Join(err, w.Sync(true), w.Close())
		},
		"Close": func(w *Writer) error {
			_, err := w.Write(small)
			return errors.Join(err, w.Close())
		},
	}
	for _, tt := range hangs() {
		t.Run(tt.what, func(t *testing.T) {
			goroutines, descriptors := left(t)
			var all sync.WaitGroup
			outcomes := make(chan error, 3*len(uses))
			for name, use := range uses {
				for _, how := range []string{"deadline", "Interrupt", "Abort"} {
					o := Options{Window: 4}
					f := newFakes(t, tt.nodes, tt.nodes)
					tt.set(f, &o)
					all.Go(func() {
						if err := endIn(t, f, o, use, how, tt.says); err != nil {
							outcomes <- fmt.Errorf("%s until %s: %w", name, how, err)
						}
					})
				}
			}
			all.Wait()
			close(outcomes)
			for err := range outcomes {
				require.NoError(t, err)
			}
			requireNothingLeft(t, goroutines, descriptors)
		})
	}
}

// endIn lets a writer hang and ends it, and says what was wrong with the end.
func endIn(t *testing.T, f *fakes, o Options, use func(*Writer) error, how, says string) error {
	const hanging = 150 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := time.Now().Add(hanging)
	if how == "deadline" {
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	w := f.writerIn(ctx, o)
	switch how {
	case "Interrupt":
		time.AfterFunc(time.Until(end), w.Interrupt)
	case "Abort":
		time.AfterFunc(time.Until(end), w.Abort)
	}
	err := use(w)
	late := time.Since(end)
	begin := time.Now()
	w.Abort()
	aborted := time.Since(begin)
	f.close()
	switch {
	case late >= promised || aborted >= promised:
		return fmt.Errorf("%v late, Abort took %v", late, aborted)
	case how != "deadline" && !errors.Is(err, fs.ErrClosed), how == "deadline" && !errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("another error: %w", err)
	case how == "deadline" && !strings.Contains(err.Error(), says):
		return fmt.Errorf("the error does not say %q: %w", says, err)
	}
	return nil
}

// Whatever goes on when a file is given up from outside, nothing goes on after it.
func TestAbortEndsEverythingAtAnyMoment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	goroutines, descriptors := left(t)
	for range 150 {
		f := newFakes(t, 4, 3)
		f.serve = []func(*session){brokenAfter(random.IntN(3)), brokenAfter(random.IntN(3)), brokenAfter(random.IntN(5))}
		w := f.writer(Options{Window: 2 + random.IntN(8)})
		data, at := content(30000), random.IntN(30000)
		done := make(chan error, 1)
		go func() {
			_, err := w.Write(data[:at])
			if err == nil {
				err = w.Sync(at%2 == 0)
			}
			if err == nil {
				_, err = w.Write(data[at:])
			}
			done <- errors.Join(err, w.Close())
		}()
		time.Sleep(time.Duration(random.IntN(4000)) * time.Microsecond)
		begin := time.Now()
		w.Abort()
		require.Less(t, time.Since(begin), promised)
		if err := <-done; err == nil {
			require.Equal(t, data, f.bytes())
		}
		require.Less(t, time.Since(begin), promised)
		f.close()
	}
	requireNothingLeft(t, goroutines, descriptors)
}
