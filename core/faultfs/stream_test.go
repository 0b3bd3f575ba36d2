package faultfs_test

import (
	"context"
	"io"
	"io/fs"
	"math/bits"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func content(t testing.TB, inner *memfs.FS, name string) string {
	t.Helper()
	r, err := inner.Open(t.Context(), name)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return string(data)
}

func create(t testing.TB, f *faultfs.FS) core.Writer {
	t.Helper()
	w, err := f.Create(t.Context(), "/file", core.CreateOptions{})
	require.NoError(t, err)
	return w
}

// writerCalls end in the call of which the fault is.
func writerCalls() map[faultfs.Op]func(w core.Writer) error {
	return map[faultfs.Op]func(w core.Writer) error{
		faultfs.OpWrite: func(w core.Writer) error {
			_, err := io.WriteString(w, "0123456789")
			return err
		},
		faultfs.OpSync:  func(w core.Writer) error { return w.Sync() },
		faultfs.OpClose: func(w core.Writer) error { return w.Close() },
	}
}

func TestAFailedWriterStaysFailedAndAbortRemovesItsFile(t *testing.T) {
	for _, after := range []bool{false, true} {
		for op, call := range writerCalls() {
			t.Run(string(op), func(t *testing.T) {
				f, inner := newFS(t)
				w := create(t, f)
				f.SetInjector(faultfs.Once(faultfs.OnOp(op, faultfs.Fault{Err: errDisk, After: after})))
				requireInjected(t, call(w), errDisk)
				for _, again := range writerCalls() {
					requireInjected(t, again(w), errDisk)
				}
				require.NoError(t, w.Abort())
				require.NoError(t, w.Abort())
				require.ErrorIs(t, w.Close(), fs.ErrClosed)
				_, err := inner.Stat(t.Context(), "/file")
				require.ErrorIs(t, err, fs.ErrNotExist)
				require.Empty(t, append(f.OpenFiles(), inner.OpenFiles()...))
			})
		}
	}
}

func TestARefusalIsNoFailure(t *testing.T) {
	inner := memfs.New(memfs.Options{Capabilities: &core.Capabilities{Durabilities: []core.Durability{core.Unsynced}}})
	f := faultfs.Wrap(inner, nil)
	w := create(t, f)
	require.Error(t, w.Sync())
	require.NoError(t, w.Close())
}

func TestAFileWhoseCloseWasLostIsThereUntilAbort(t *testing.T) {
	f, inner := newFS(t)
	w := create(t, f)
	_, err := io.WriteString(w, "content")
	require.NoError(t, err)
	f.SetInjector(faultfs.OnOp(faultfs.OpClose, faultfs.Fault{Err: errDisk, After: true}))
	requireInjected(t, w.Close(), errDisk)
	require.Equal(t, "content", content(t, inner, "/file"))
	require.NoError(t, w.Abort())
	require.NotContains(t, inner.Tree(), "/file 7")
}

func TestAFailedAbortLeavesTheFileAndMayBeRepeated(t *testing.T) {
	f, inner := newFS(t)
	w := create(t, f)
	_, err := io.WriteString(w, "content")
	require.NoError(t, err)
	f.SetInjector(faultfs.Once(faultfs.OnOp(faultfs.OpAbort, faultfs.Fault{Err: errDisk})))
	requireInjected(t, w.Abort(), errDisk)
	require.Contains(t, inner.Tree(), "/file 7")
	require.Empty(t, inner.OpenFiles())
	require.ErrorIs(t, w.Close(), fs.ErrClosed)
	require.NoError(t, w.Abort())
	require.NotContains(t, inner.Tree(), "/file 7")
	count := f.Count()
	require.NoError(t, w.Abort())
	require.Equal(t, count, f.Count(), "there is nothing left to do")
}

func TestAnAbortWhoseReplyIsLostHasRemovedTheFile(t *testing.T) {
	f, inner := newFS(t)
	w := create(t, f)
	f.SetInjector(faultfs.OnOp(faultfs.OpAbort, faultfs.Fault{Err: errDisk, After: true}))
	requireInjected(t, w.Abort(), errDisk)
	_, err := inner.Stat(t.Context(), "/file")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestAWriteIsTorn(t *testing.T) {
	for _, test := range []struct {
		fault faultfs.Fault
		want  string
		cause error
	}{
		{faultfs.Fault{Tear: 4}, "0123", faultfs.ErrInjected},
		{faultfs.Fault{Tear: 4, Err: core.ErrNoSpace}, "0123", core.ErrNoSpace},
		{faultfs.Fault{Tear: 10, Err: errDisk}, "0123456789", errDisk},
		{faultfs.Fault{Tear: 99, Err: errDisk}, "0123456789", errDisk},
		{faultfs.Fault{Err: errDisk}, "", errDisk},
		{faultfs.Fault{Err: errDisk, After: true}, "0123456789", errDisk},
	} {
		f, inner := newFS(t)
		w := create(t, f)
		f.SetInjector(faultfs.OnOp(faultfs.OpWrite, test.fault))
		n, err := io.WriteString(w, "0123456789")
		requireInjected(t, err, test.cause)
		require.Equal(t, len(test.want), n)
		require.Equal(t, test.want, content(t, inner, "/file"))
		require.NoError(t, w.Abort())
	}
}

func TestAReadIsTorn(t *testing.T) {
	for name, read := range map[string]func(r core.Reader, p []byte) (int, error){
		"Read":   func(r core.Reader, p []byte) (int, error) { return r.Read(p) },
		"ReadAt": func(r core.Reader, p []byte) (int, error) { return r.ReadAt(p, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, test := range []struct {
				fault faultfs.Fault
				want  string
			}{
				{faultfs.Fault{Tear: 4, Err: errDisk}, "cont"},
				{faultfs.Fault{Tear: 99, Err: errDisk}, "content of old"},
				{faultfs.Fault{Err: errDisk}, ""},
				{faultfs.Fault{Err: errDisk, After: true}, ""},
			} {
				f, _ := newFS(t)
				r, err := f.Open(t.Context(), "/old")
				require.NoError(t, err)
				f.SetInjector(faultfs.From(0, test.fault))
				buffer := make([]byte, 14)
				n, err := read(r, buffer)
				requireInjected(t, err, errDisk)
				require.Equal(t, test.want, string(buffer[:n]))
				require.Equal(t, make([]byte, 14-n), buffer[n:], "bytes that were not delivered")
				require.NoError(t, r.Close())
			}
		})
	}
}

// requireOneBit requires that two texts differ in exactly the given bit.
func requireOneBit(t testing.TB, want, got string, bit int) {
	t.Helper()
	require.Len(t, got, len(want))
	flipped := 0
	for i := range want {
		flipped += bits.OnesCount8(want[i] ^ got[i])
	}
	require.Equal(t, 1, flipped)
	require.Equal(t, byte(1)<<(bit%8), want[bit/8]^got[bit/8])
}

func TestOneBitIsFlipped(t *testing.T) {
	const old = "content of old"
	for given, bit := range map[int]int{0: 0, 13: 13, 8*14 - 1: 8*14 - 1, 8 * 14: 0, 8*14 + 5: 5, -1: 8*14 - 1} {
		f, inner := newFS(t)
		f.SetInjector(faultfs.From(0, faultfs.Fault{Flip: true, Bit: given}))
		r, err := f.Open(t.Context(), "/old")
		require.NoError(t, err)
		buffer := make([]byte, 14)
		_, err = r.ReadAt(buffer, 0)
		require.NoError(t, err)
		requireOneBit(t, old, string(buffer), bit)
		_, err = r.Read(buffer)
		require.NoError(t, err)
		requireOneBit(t, old, string(buffer), bit)
		require.NoError(t, r.Close())
		require.Equal(t, old, content(t, inner, "/old"), "what is stored stays as it is")

		w := create(t, f)
		data := []byte(old)
		n, err := w.Write(data)
		require.NoError(t, err)
		require.Equal(t, len(old), n)
		require.Equal(t, old, string(data), "the caller's buffer stays as it is")
		require.NoError(t, w.Close())
		requireOneBit(t, old, content(t, inner, "/file"), bit)
	}
}

func TestABlockedCallEndsWithItsContext(t *testing.T) {
	for _, after := range []bool{false, true} {
		for op, call := range nameCalls() {
			t.Run(string(op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, inner := newFS(t)
					before := inner.Tree()
					f.SetInjector(faultfs.OnOp(op, faultfs.Fault{Block: make(chan struct{}), After: after}))
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					start := time.Now()
					requireInjected(t, call(ctx, f), context.DeadlineExceeded)
					require.Equal(t, time.Hour, time.Since(start))
					if !after {
						require.Equal(t, before, inner.Tree())
					}
					require.Empty(t, append(f.OpenFiles(), inner.OpenFiles()...))
				})
			})
		}
	}
}

func TestABlockedCallGoesOnWhenTheChannelIsClosed(t *testing.T) {
	for _, after := range []bool{false, true} {
		for op, call := range nameCalls() {
			t.Run(string(op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, _ := newFS(t)
					release := make(chan struct{})
					f.SetInjector(faultfs.OnOp(op, faultfs.Fault{Block: release, After: after}))
					time.AfterFunc(time.Minute, func() { close(release) })
					start := time.Now()
					require.NoError(t, call(t.Context(), f))
					require.Equal(t, time.Minute, time.Since(start))
				})
			})
		}
	}
}

func TestADelayedCallHappensLaterOrEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newFS(t)
		f.SetInjector(faultfs.From(0, faultfs.Fault{Delay: time.Minute}))
		start := time.Now()
		_, err := f.Stat(t.Context(), "/old")
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = f.Stat(ctx, "/old")
		requireInjected(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute+time.Second, time.Since(start))
	})
}

func TestAbortBreaksACallThatHangs(t *testing.T) {
	for _, fault := range []faultfs.Fault{
		{Block: make(chan struct{})}, {Block: make(chan struct{}), After: true}, {Delay: time.Hour}, {Delay: time.Hour, After: true},
	} {
		for op, call := range writerCalls() {
			t.Run(string(op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fault := fault
					if fault.Block != nil {
						fault.Block = make(chan struct{}) // one of this bubble
					}
					f, inner := newFS(t)
					w := create(t, f)
					f.SetInjector(faultfs.OnOp(op, fault))
					result := make(chan error, 1)
					go func() { result <- call(w) }()
					synctest.Wait()
					require.NoError(t, w.Abort())
					requireInjected(t, <-result, fs.ErrClosed)
					require.ErrorIs(t, w.Close(), fs.ErrClosed)
					_, err := inner.Stat(t.Context(), "/file")
					require.ErrorIs(t, err, fs.ErrNotExist)
					require.Empty(t, append(f.OpenFiles(), inner.OpenFiles()...))
				})
			})
		}
	}
}

func TestAbortRemovesAFileThatIsCommittedMeanwhile(t *testing.T) {
	f, inner := newFS(t)
	w := create(t, f)
	inner.OnMutation(func(m memfs.Mutation) {
		if m.Op == memfs.OpClose && m.Step == memfs.EntryDurable {
			require.NoError(t, w.Abort(), "the inner Close has committed and not returned")
		}
	})
	requireInjected(t, w.Close(), fs.ErrClosed)
	require.ErrorIs(t, w.Close(), fs.ErrClosed)
	_, err := inner.Stat(t.Context(), "/file")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestABlockedAbortEndsAfterItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, inner := newFS(t)
		w := create(t, f)
		f.SetInjector(faultfs.OnOp(faultfs.OpAbort, faultfs.Fault{Block: make(chan struct{})}))
		start := time.Now()
		requireInjected(t, w.Abort(), context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Contains(t, inner.Tree(), "/file 0")
	})
}

func TestAStreamIsBlockedUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newFS(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, err := f.Create(ctx, "/file", core.CreateOptions{})
		require.NoError(t, err)
		r, err := f.Open(ctx, "/old")
		require.NoError(t, err)
		f.SetInjector(faultfs.From(0, faultfs.Fault{Block: make(chan struct{})}))
		start := time.Now()
		_, err = w.Write([]byte("x"))
		requireInjected(t, err, context.DeadlineExceeded)
		_, err = r.Read(make([]byte, 1))
		requireInjected(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
		f.SetInjector(nil)
		requireInjected(t, w.Close(), context.DeadlineExceeded)
		require.NoError(t, w.Abort())
		require.NoError(t, r.Close())
	})
}
