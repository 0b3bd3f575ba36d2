package core_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// streamRig is a storage on a memory file system behind one with faults, and checkpoint 7 of it. The directories exist; they
// were made beside the fault injection, so that what it counts is what the code under test does.
type streamRig struct {
	mem      *memfs.FS
	faults   *faultfs.FS
	storage  *core.Storage
	location *core.Location
}

var rigJob = core.JobIDOf("stream rig")

const rigBase = "/ckpt"

func newStreamRig(t testing.TB, opts core.Options) *streamRig {
	t.Helper()
	return newStreamRigOn(t, memfs.New(memfs.Options{}), opts, nil)
}

// newStreamRigOn puts the storage on top of what wrap makes of the file system with faults.
func newStreamRigOn(t testing.TB, mem *memfs.FS, opts core.Options, wrap func(core.FileSystem) core.FileSystem) *streamRig {
	t.Helper()
	r := &streamRig{mem: mem, faults: faultfs.Wrap(mem, nil)}
	var fsys core.FileSystem = r.faults
	if wrap != nil {
		fsys = wrap(fsys)
	}
	var err error
	r.storage, err = core.NewStorage(fsys, rigBase, rigJob, opts)
	require.NoError(t, err)
	r.location, err = r.storage.ResolveLocation(context.Background(), 7, nil)
	require.NoError(t, err)
	for _, dir := range []string{r.location.CheckpointDir(), r.location.SharedDir(), r.location.TaskOwnedDir()} {
		require.NoError(t, mem.MkdirAll(context.Background(), dir))
	}
	return r
}

func (r *streamRig) exclusive(ctx context.Context) *core.StateStream {
	return r.location.CreateStateStream(ctx, core.Exclusive)
}

// files are the names of all files.
func (r *streamRig) files() []string { return filesOf(r.mem) }

func filesOf(mem *memfs.FS) []string {
	var names []string
	for _, line := range mem.Tree() {
		if !strings.HasSuffix(line, "/") {
			names = append(names, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	return names
}

// requireNothingLeft is what holds after a stream was discarded.
func (r *streamRig) requireNothingLeft(t testing.TB) {
	t.Helper()
	require.Empty(t, r.files())
	require.Empty(t, r.mem.OpenFiles())
	require.Empty(t, r.faults.OpenFiles())
}

// requireLeftoversNamed is what holds after a failure: each file that is left is named by an error.
func (r *streamRig) requireLeftoversNamed(t testing.TB, err error) {
	t.Helper()
	for _, name := range r.files() {
		require.ErrorContains(t, err, name)
	}
	require.Empty(t, r.faults.OpenFiles())
}

// count is how many calls of op were made.
func (r *streamRig) count(op faultfs.Op) int {
	n := 0
	for _, c := range r.faults.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}

// stateOf reads the state of a handle through OpenState.
func stateOf(t testing.TB, fsys core.FileSystem, handle core.StreamHandle) []byte {
	t.Helper()
	r, err := core.OpenState(context.Background(), core.OnlyOn(fsys), handle)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return data
}

// requireState says that a handle leads to the bytes; an empty state is a nil handle.
func requireState(t testing.TB, fsys core.FileSystem, want []byte, handle core.StreamHandle) {
	t.Helper()
	got := stateOf(t, fsys, handle)
	require.Len(t, got, len(want))
	if !bytes.Equal(want, got) {
		require.Failf(t, "other bytes", "the state of %d bytes differs", len(want))
	}
	if handle != nil {
		require.Equal(t, int64(len(want)), handle.StateSize())
	}
}

// loggedRand is a generator whose seed the log of a failed test names.
func loggedRand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// noise is n bytes of which none is 0 or 0xaa, the values of cleared and of untouched memory in these tests. Different
// lengths begin differently.
func noise(n int) []byte {
	at := n % 1009
	return bytes.Clone(noiseSource()[at : at+n])
}

var noiseSource = sync.OnceValue(func() []byte {
	data := make([]byte, 4<<20)
	generator := rand.New(rand.NewPCG(1, 42))
	for i := range data {
		data[i] = 1 + byte(generator.Uint32())%0xa9
	}
	return data
})

// hookFS lets a test answer for the calls of its Writers, for behaviour that faultfs, which keeps to the contract, refuses
// to show: a Writer that forgets its failure, one that writes short, a Create that cannot be interrupted.
type hookFS struct {
	core.FileSystem
	create func(ctx context.Context, name string, next func() (core.Writer, error)) (core.Writer, error)
	write  func(p []byte, next func([]byte) (int, error)) (int, error)
	sync   func(next func() error) error
	close  func(next func() error) error
	abort  func(next func() error) error
	rename func(oldname, newname string, next func() error) error
	stat   func(name string, next func() (core.FileInfo, error)) (core.FileInfo, error)
}

func (f *hookFS) Create(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
	next := func() (core.Writer, error) {
		w, err := f.FileSystem.Create(ctx, name, opts)
		if err != nil {
			return nil, err
		}
		return &hookWriter{fs: f, inner: w}, nil
	}
	if f.create == nil {
		return next()
	}
	return f.create(ctx, name, next)
}

func (f *hookFS) Rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	next := func() error { return f.FileSystem.Rename(ctx, oldname, newname, mode) }
	if f.rename == nil {
		return next()
	}
	return f.rename(oldname, newname, next)
}

func (f *hookFS) Stat(ctx context.Context, name string) (core.FileInfo, error) {
	next := func() (core.FileInfo, error) { return f.FileSystem.Stat(ctx, name) }
	if f.stat == nil {
		return next()
	}
	return f.stat(name, next)
}

type hookWriter struct {
	fs    *hookFS
	inner core.Writer
}

func (w *hookWriter) Write(p []byte) (int, error) {
	if w.fs.write == nil {
		return w.inner.Write(p)
	}
	return w.fs.write(p, w.inner.Write)
}

func (w *hookWriter) Sync() error  { return hooked(w.fs.sync, w.inner.Sync) }
func (w *hookWriter) Close() error { return hooked(w.fs.close, w.inner.Close) }
func (w *hookWriter) Abort() error { return hooked(w.fs.abort, w.inner.Abort) }

func hooked(hook func(func() error) error, next func() error) error {
	if hook == nil {
		return next()
	}
	return hook(next)
}

// failOnce fails the first call without making it.
func failOnce(err error) func(func() error) error {
	var once sync.Once
	return func(next func() error) error {
		failed := false
		once.Do(func() { failed = true })
		if failed {
			return err
		}
		return next()
	}
}

func withoutName(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}
