package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

const (
	base         = "/checkpoints"
	savepointDir = "/savepoints"
	testInline   = 64 // inline threshold in bytes
)

var (
	feed      = Operator{UID: "source", Name: "the source"}.withDefaults()
	counter   = Operator{UID: "counter", Parallelism: 2, MaxParallelism: 8}.withDefaults()
	operators = []Operator{feed, counter}
	jobID     = core.JobIDOf("test")
	jobDir    = base + "/" + jobID.String()
)

func allTasks() []Task {
	return []Task{{feed.ID, 0}, {counter.ID, 0}, {counter.ID, 1}}
}

func newStorage(tb testing.TB, fsys core.FileSystem) *core.Storage {
	tb.Helper()
	storage, err := core.NewStorage(fsys, base, jobID, core.Options{InlineThreshold: testInline, SavepointDir: core.Qualify(fsys.URI(), savepointDir)})
	require.NoError(tb, err)
	return storage
}

// content is the state of a task: it can be told by itself which checkpoint, task and part it belongs to.
func content(epoch uint64, id int64, task Task, part string) []byte {
	text := fmt.Sprintf("%s of %v in checkpoint %d of epoch %d. ", part, task, id, epoch)
	size := 10 * testInline
	if part == "inline" {
		size = testInline / 2
	}
	return []byte(strings.Repeat(text, size/len(text)+1)[:size])
}

// tasks are the tasks of a job: they write state of every kind and refer to shared files once more.
type tasks struct {
	storage *core.Storage
	packer  *core.Packer // nil: states are not packed

	mu     sync.Mutex
	shared map[Task]map[int64][]metadata.NamedFile // by checkpoint
}

func newTasks(storage *core.Storage) *tasks {
	return &tasks{storage: storage, shared: map[Task]map[int64][]metadata.NamedFile{}}
}

func (w *tasks) remember(task Task, id int64, files []metadata.NamedFile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shared[task] == nil {
		w.shared[task] = map[int64][]metadata.NamedFile{}
	}
	w.shared[task][id] = files
}

func (w *tasks) known(task Task, id int64) []metadata.NamedFile {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.shared[task][id])
}

// sharedFiles is how many shared files a checkpoint refers to at most, for each task.
const sharedFiles = 3

// snapshot writes the state of a task: inline and exclusive state, and a new shared file beside those of the base.
func (w *tasks) snapshot(ctx context.Context, t Trigger, task Task) (*metadata.SubtaskState, error) {
	if w.packer != nil {
		return w.packedSnapshot(ctx, t, task)
	}
	write := func(scope core.Scope, part string) (core.StreamHandle, error) {
		return t.WriteState(ctx, w.storage, scope, func(out io.Writer) error {
			_, err := out.Write(content(t.Epoch, t.CheckpointID, task, part))
			return err
		})
	}
	inline, err := write(core.Exclusive, "inline")
	if err != nil {
		return nil, err
	}
	label := fmt.Sprintf("%d-%d", t.Epoch, t.CheckpointID)
	state := &metadata.SubtaskState{ManagedOperator: metadata.NewOperatorHandle([]metadata.NamedState{{Name: label, Offsets: []int64{0}}}, inline)}
	if task.Operator == feed.ID {
		return state, nil
	}
	exclusive, err := write(core.Exclusive, "exclusive")
	if err != nil {
		return nil, err
	}
	fresh, err := write(core.Shared, "shared")
	if err != nil {
		return nil, err
	}
	files := append(w.known(task, t.Base), metadata.NamedFile{LocalPath: label, Handle: fresh})
	files = files[max(0, len(files)-sharedFiles):]
	w.remember(task, t.CheckpointID, files)
	state.ManagedKeyed, err = incremental(t, task, exclusive, files)
	return state, err
}

func incremental(t Trigger, task Task, exclusive core.StreamHandle, files []metadata.NamedFile) (*metadata.IncrementalHandle, error) {
	groups, err := metadata.KeyGroupsOfSubtask(task.Subtask, counter.Parallelism, counter.MaxParallelism)
	return &metadata.IncrementalHandle{
		CheckpointID: t.CheckpointID, BackendID: "7d8f4b5e-0000-4000-8000-00000000000" + fmt.Sprint(task.Subtask), Range: groups,
		PersistedSize: files[len(files)-1].Handle.StateSize(), Meta: exclusive, Shared: files, ID: "a6c3a1c2-0000-4000-8000-000000000000",
	}, err
}

// restore lets the tasks go on from a checkpoint, after a look at every byte of it. It returns the epoch that wrote it.
func (w *tasks) restore(ctx context.Context, r *Restored) (uint64, error) {
	var writer uint64
	for _, task := range allTasks() {
		epoch, err := w.restoreTask(ctx, r, task)
		if err != nil {
			return 0, fmt.Errorf("task %v of checkpoint %d: %w", task, r.ID, err)
		}
		if writer != 0 && writer != epoch {
			return 0, fmt.Errorf("checkpoint %d is a mix of epochs %d and %d", r.ID, writer, epoch)
		}
		writer = epoch
	}
	return writer, nil
}

func (w *tasks) restoreTask(ctx context.Context, r *Restored, task Task) (uint64, error) {
	parallelism := 1
	if task.Operator == counter.ID {
		parallelism = counter.Parallelism
	}
	parts, err := r.OperatorParts(task.Operator, parallelism, task.Subtask)
	if err != nil {
		return 0, err
	}
	if len(parts) != 1 || len(parts[0].States) != 1 {
		return 0, fmt.Errorf("operator state %v", parts)
	}
	epoch, id, err := parseLabel(parts[0].States[0].Name)
	if err != nil || id != r.ID {
		return 0, fmt.Errorf("state of checkpoint %d: %w", id, err)
	}
	if err := checkContent(ctx, r, parts[0].Delegate, content(epoch, id, task, "inline")); err != nil {
		return 0, err
	}
	if task.Operator == feed.ID {
		return epoch, nil
	}
	keyed, err := r.KeyedParts(task.Operator, parallelism, task.Subtask)
	if err != nil || len(keyed) != 1 {
		return 0, fmt.Errorf("keyed state %v: %w", keyed, err)
	}
	handle, ok := keyed[0].Handle.(*metadata.IncrementalHandle)
	if !ok {
		return 0, fmt.Errorf("keyed state %T", keyed[0].Handle)
	}
	if err := checkContent(ctx, r, handle.Meta, content(epoch, id, task, "exclusive")); err != nil {
		return 0, err
	}
	for _, file := range handle.Shared {
		fileEpoch, fileID, err := parseLabel(file.LocalPath)
		if err != nil {
			return 0, err
		}
		if err := checkContent(ctx, r, file.Handle, content(fileEpoch, fileID, task, "shared")); err != nil {
			return 0, err
		}
	}
	if r.Kind == Checkpoint {
		w.remember(task, r.ID, handle.Shared)
	}
	return epoch, nil
}

func parseLabel(label string) (epoch uint64, id int64, err error) {
	_, err = fmt.Sscanf(label, "%d-%d", &epoch, &id)
	return epoch, id, err
}

func checkContent(ctx context.Context, r *Restored, handle core.StreamHandle, want []byte) error {
	reader, err := r.Open(ctx, handle)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

// world is a job in one process: a coordinator, its tasks, and what the callbacks said.
type world struct {
	tb      testing.TB
	storage *core.Storage
	tasks   *tasks
	c       *Coordinator
	counts  *Counters
	// send replaces what the tasks do with a trigger; by default all of them acknowledge at once.
	send func(ctx context.Context, t Trigger) error

	mu        sync.Mutex
	sent      []Trigger
	committed []Committed
	aborted   []Aborted
	events    []Event
}

// newWorld makes a coordinator that is not started.
func newWorld(tb testing.TB, fsys core.FileSystem, change func(*Options)) *world {
	tb.Helper()
	w := &world{tb: tb, storage: newStorage(tb, fsys), counts: &Counters{}}
	w.tasks = newTasks(w.storage)
	opts := Options{
		Storage: w.storage, Operators: operators, Send: w.receive, Observer: w,
		OnCommitted: func(_ context.Context, c Committed) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.committed = append(w.committed, c)
			return nil
		},
		OnAborted: func(_ context.Context, a Aborted) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.aborted = append(w.aborted, a)
		},
	}
	if change != nil {
		change(&opts)
	}
	c, err := New(opts)
	require.NoError(tb, err)
	w.c = c
	return w
}

// startWorld also starts it, and lets the tasks restore.
func startWorld(tb testing.TB, fsys core.FileSystem, change func(*Options)) *world {
	tb.Helper()
	w := newWorld(tb, fsys, change)
	restored, err := w.c.Start(tb.Context())
	require.NoError(tb, err)
	if !restored.Empty() {
		_, err := w.tasks.restore(tb.Context(), restored)
		require.NoError(tb, err)
	}
	return w
}

// Observe implements Observer.
func (w *world) Observe(e Event) {
	w.counts.Observe(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *world) receive(ctx context.Context, t Trigger) error {
	w.mu.Lock()
	w.sent = append(w.sent, t)
	send := w.send
	w.mu.Unlock()
	if send != nil {
		return send(ctx, t)
	}
	return w.ackAll(ctx, t)
}

func (w *world) setSend(send func(ctx context.Context, t Trigger) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.send = send
}

func (w *world) ackAll(ctx context.Context, t Trigger) error {
	for _, task := range allTasks() {
		if err := w.ack(ctx, t, task); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) ack(ctx context.Context, t Trigger, task Task) error {
	state, err := w.tasks.snapshot(ctx, t, task)
	if err != nil {
		return err
	}
	return w.c.Acknowledge(ctx, t.Ack(task, state))
}

// checkpoint takes a checkpoint that must be committed.
func (w *world) checkpoint() *Committed {
	w.tb.Helper()
	committed, err := w.c.TriggerCheckpoint(w.tb.Context())
	require.NoError(w.tb, err)
	return committed
}

func (w *world) triggers() []Trigger {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

func (w *world) lastTrigger() Trigger {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[len(w.sent)-1]
}

func (w *world) committedIDs() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []int64
	for _, c := range w.committed {
		ids = append(ids, c.ID)
	}
	return ids
}

func (w *world) abortedIDs() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []int64
	for _, a := range w.aborted {
		ids = append(ids, a.ID)
	}
	return ids
}

// tree lists all files below dir.
func tree(tb testing.TB, fsys core.FileSystem, dir string) []string {
	tb.Helper()
	var files []string
	for info, err := range fsys.List(tb.Context(), dir) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		require.NoError(tb, err)
		name := path.Join(dir, info.Name)
		if info.IsDir() {
			files = append(files, tree(tb, fsys, name)...)
		} else {
			files = append(files, name)
		}
	}
	return files
}

// completeIDs are the ids of the complete checkpoints of the job.
func completeIDs(tb testing.TB, fsys core.FileSystem) []int64 {
	tb.Helper()
	entries, err := core.ListCheckpoints(tb.Context(), fsys, jobDir)
	require.NoError(tb, err)
	var ids []int64
	for _, entry := range entries {
		if entry.State == core.Complete {
			ids = append(ids, entry.ID)
		}
	}
	return ids
}

// requireTidy checks that the job directory holds exactly the checkpoints ids, each restorable to the last byte, the owner's
// claim, and the extra files.
func requireTidy(tb testing.TB, fsys core.FileSystem, ids []int64, extra ...string) {
	tb.Helper()
	want := map[string]bool{}
	for _, name := range extra {
		want[name] = true
	}
	require.Equal(tb, ids, completeIDs(tb, fsys))
	for _, id := range ids {
		for _, name := range requireRestorable(tb, fsys, path.Join(jobDir, core.CheckpointDirName(id))) {
			want[name] = true
		}
	}
	claims := 0
	for _, name := range tree(tb, fsys, jobDir) {
		if strings.HasPrefix(name, jobDir+"/.epoch-") && path.Base(name) == "owner" {
			claims++
			continue
		}
		require.True(tb, want[name], "%s belongs to none of the checkpoints %v", name, ids)
	}
	require.Equal(tb, 1, claims)
}

// requireRestorable checks a checkpoint or savepoint to the last byte, and returns the names of all its files.
func requireRestorable(tb testing.TB, fsys core.FileSystem, dir string) []string {
	tb.Helper()
	names, err := restorable(tb, fsys, dir)
	require.NoError(tb, err)
	return names
}

func restorable(tb testing.TB, fsys core.FileSystem, dir string) ([]string, error) {
	tb.Helper()
	w := newWorld(tb, fsys, nil)
	completed, err := core.ResolvePointer(tb.Context(), core.OnlyOn(fsys), core.Qualify(fsys.URI(), dir))
	if err != nil {
		return nil, err
	}
	f, err := w.c.read(tb.Context(), completed)
	if err != nil {
		return nil, err
	}
	if _, err := w.tasks.restore(tb.Context(), &f.Restored); err != nil {
		return nil, err
	}
	names := []string{path.Join(dir, core.MetadataName)}
	for _, object := range f.objects {
		_, name, err := core.SplitQualified(object.Path)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// newFS is a file system in memory that reports leaked files at the end of the test.
func newFS(tb testing.TB) *memfs.FS {
	tb.Helper()
	fsys := memfs.New(memfs.Options{})
	tb.Cleanup(func() { require.Empty(tb, fsys.OpenFiles()) })
	return fsys
}

// writeFile makes a durable file, and its directory.
func writeFile(tb testing.TB, fsys core.FileSystem, name, text string) {
	tb.Helper()
	require.NoError(tb, fsys.MkdirAll(tb.Context(), path.Dir(name)))
	w, err := fsys.Create(tb.Context(), name, core.CreateOptions{})
	require.NoError(tb, err)
	_, err = w.Write([]byte(text))
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
}

// damage replaces a file by one whose last byte is another.
func damage(tb testing.TB, fsys core.FileSystem, name string) {
	tb.Helper()
	r, err := fsys.Open(tb.Context(), name)
	require.NoError(tb, err)
	data, err := io.ReadAll(r)
	require.NoError(tb, err)
	require.NoError(tb, r.Close())
	require.NoError(tb, fsys.Remove(tb.Context(), name))
	data[len(data)-1] ^= 1
	writeFile(tb, fsys, name, string(data))
}

func metadataName(id int64) string {
	return path.Join(jobDir, core.CheckpointDirName(id), core.MetadataName)
}

// logTo lets a coordinator log into the test.
func logTo(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), nil))
}
