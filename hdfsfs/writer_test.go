package hdfsfs

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/internal/blocks"
)

func TestAFileThatFailsAnywhereIsNeverClosedWithSuccess(t *testing.T) {
	content := make([]byte, 3*blocks.Size+1)
	for _, cause := range []error{errFake, errors.New("broken pipe"), &remoteError{class: "java.io.IOException", message: "x"}} {
		for _, method := range []string{"write", "finish"} {
			for call := 1; call <= 5; call++ {
				c := newFake()
				f := onFake(t, c, Options{})
				n := 0
				c.before = func(m, _ string) error {
					if m == method {
						if n++; n == call {
							return cause
						}
					}
					return nil
				}
				w, err := f.Create(t.Context(), "/file", core.CreateOptions{})
				require.NoError(t, err)
				_, err = w.Write(content)
				closed := w.Close()
				if n < call {
					require.NoError(t, err)
					require.NoError(t, closed)
					continue
				}
				require.ErrorIs(t, closed, cause, "%s, call %d", method, call)
				require.ErrorIs(t, w.Close(), cause)
				_, err = w.Write([]byte("x"))
				require.Error(t, err)
				require.Error(t, w.Sync())
				require.LessOrEqual(t, c.count("finish"), 1, "it was tried to commit a failed file")
				require.NoError(t, w.Abort())
				require.Empty(t, c.left())
			}
		}
	}
}

func TestMinReplicasDecideOnSuccess(t *testing.T) {
	for _, tt := range []struct {
		asked, acknowledged int
		ok                  bool
	}{{0, 3, true}, {0, 2, true}, {0, 1, false}, {1, 1, true}, {2, 1, false}, {3, 2, false}, {3, 3, true}} {
		c := newFake()
		c.replicas = tt.acknowledged
		f := onFake(t, c, Options{})
		w, err := f.Create(t.Context(), "/file", core.CreateOptions{MinReplicas: tt.asked})
		require.NoError(t, err)
		_, err = w.Write([]byte("content"))
		require.NoError(t, err)
		if err = w.Close(); tt.ok {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, core.ErrUnavailable)
		require.ErrorIs(t, w.Close(), core.ErrUnavailable)
		require.NoError(t, w.Abort())
		require.Empty(t, c.left())
	}
	c := newFake()
	_, err := onFake(t, c, Options{}).Create(t.Context(), "/file", core.CreateOptions{MinReplicas: 4})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.Empty(t, c.left())
}

func TestAbortOfAWriterThatHangsBreaksIt(t *testing.T) {
	c := newFake()
	f := onFake(t, c, Options{})
	w, err := f.Create(t.Context(), "/file", core.CreateOptions{})
	require.NoError(t, err)
	inner := w.(*writer).client.(*fakeWriter) //nolint:forcetypeassert // of this package
	inner.cut = make(chan struct{})
	cut := inner.cut
	c.before = func(m, _ string) error {
		if m == "write" {
			<-cut
			return errFake
		}
		return nil
	}
	_, err = w.Write(make([]byte, 2*blocks.Size))
	require.NoError(t, err)
	begin := time.Now()
	require.NoError(t, w.Abort())
	require.Less(t, time.Since(begin), breakAfter+2*time.Second)
	require.Empty(t, c.left())
}

func TestAbortSaysWhatItMayLeaveBehind(t *testing.T) {
	c := newFake()
	f := onFake(t, c, Options{})
	f.abortLimit = 200 * time.Millisecond
	w, err := f.Create(t.Context(), "/file", core.CreateOptions{})
	require.NoError(t, err)
	c.before = failing("remove", -1, errFake)
	begin := time.Now()
	err = w.Abort()
	require.Less(t, time.Since(begin), time.Second)
	require.ErrorContains(t, err, "left behind")
}

// scripted is a library file whose Close returns one thing after another.
type scripted struct {
	closes []error
	calls  int
}

func (s *scripted) Write(p []byte) (int, error)   { return len(p), nil }
func (s *scripted) SetDeadline(_ time.Time) error { return nil }
func (s *scripted) Close() error {
	err := s.closes[min(s.calls, len(s.closes)-1)]
	s.calls++
	return err
}

func TestTheLibrarysCloseIsRepeatedOnlyWhileItWaitsForReplicas(t *testing.T) {
	replicating := &os.PathError{Op: "create", Path: "/file", Err: hdfs.ErrReplicating}
	broken := errors.New("Ack error from datanode: ERROR")
	for _, tt := range []struct {
		name   string
		closes []error
		calls  int // 0: more than 3
		ok     bool
	}{
		{"at once", []error{nil}, 1, true},
		{"after a while", []error{replicating, replicating, replicating, nil}, 4, true},
		{"never", []error{replicating}, 0, false},
		{"a DataNode has failed: a second Close would be nil", []error{broken, nil}, 1, false},
		{"the NameNode has failed after a while", []error{replicating, broken, nil}, 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLibrary(settings{}, nil, Options{}.withDefaults())
			n := &lane{owner: l, streams: 1}
			file := &scripted{closes: tt.closes}
			w := &libraryWriter{lane: n, file: file, stream: l.newStream(), blockSize: 1 << 20}
			w.stream.sendsTo(3)
			w.stream.sendsTo(2)
			require.NoError(t, w.write([]byte("content")))
			replicas, err := w.finish(60 * time.Millisecond)
			if tt.calls > 0 {
				require.Equal(t, tt.calls, file.calls)
			} else {
				require.Greater(t, file.calls, 3)
			}
			if tt.ok {
				require.NoError(t, err)
				require.Equal(t, 2, replicas)
				require.Zero(t, n.streams)
				require.Empty(t, l.streams)
				return
			}
			require.ErrorIs(t, err, core.ErrUnavailable)
			calls := file.calls
			w.discard(true)
			require.Equal(t, calls, file.calls, "a failed file was closed again")
			require.Zero(t, n.streams)
			require.Empty(t, l.streams)
		})
	}
}

func TestAFileThatCouldNotBeRemovedIsNotFinishedEither(t *testing.T) {
	l := newLibrary(settings{}, nil, Options{}.withDefaults())
	file := &scripted{closes: []error{nil}}
	w := &libraryWriter{lane: &lane{owner: l, streams: 1}, file: file, stream: l.newStream(), blockSize: 1 << 20}
	c := &dataConn{}
	c.packets.Store(true)
	w.stream.last = c
	w.discard(false)
	require.Zero(t, file.calls)
	require.EqualValues(t, 1, l.counts().LeakedWriters)
}
