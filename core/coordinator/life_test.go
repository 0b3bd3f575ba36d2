package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// ledger is what a job was told about its checkpoints: what the storage has to keep to whatever happens.
type ledger struct {
	mu         sync.Mutex
	newest     made            // the newest checkpoint that was reported as committed
	aborted    map[made]bool   // those reported as aborted
	savepoints map[string]bool // names of the directories of committed ones
	surfaced   error           // errors and events so far
	packed     bool            // the tasks pack their states
}

// made is a checkpoint: an id may be used again in another epoch.
type made struct {
	epoch uint64
	id    int64
}

func newLedger() *ledger { return &ledger{aborted: map[made]bool{}, savepoints: map[string]bool{}} }

func (l *ledger) clone() *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &ledger{
		newest: l.newest, aborted: maps.Clone(l.aborted), savepoints: maps.Clone(l.savepoints), surfaced: l.surfaced, packed: l.packed,
	}
}

func (l *ledger) surface(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.surfaced = errors.Join(l.surfaced, err)
}

// Observe implements Observer.
func (l *ledger) Observe(e Event) {
	if e.Err != nil {
		l.surface(e.Err)
	}
}

func (l *ledger) committed(c *Committed, err error) {
	l.surface(err)
	if c == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Kind == Savepoint {
		_, name, _ := core.SplitQualified(c.Pointer)
		l.savepoints[name] = true
	} else if c.ID > l.newest.id {
		l.newest = made{c.Epoch, c.ID}
	}
}

// options are those of a job that enters everything into the ledger.
func (l *ledger) options(o *Options) {
	o.Retain = 2
	o.Observer = l
	o.OnCommitted = func(_ context.Context, c Committed) error {
		if !c.Repeated {
			l.committed(&c, nil)
		}
		return nil
	}
	o.OnAborted = func(_ context.Context, a Aborted) {
		if !a.Repeated {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.aborted[made{a.Epoch, a.ID}] = true
		}
	}
}

// begin starts a job, at the second attempt if need be. It returns nil if that fails.
func (l *ledger) begin(tb testing.TB, fsys core.FileSystem) *world {
	w := newWorld(tb, fsys, l.options)
	if l.packed {
		w.tasks.pack(tb)
	}
	for range 2 {
		restored, err := w.c.Start(tb.Context())
		if err == nil && !restored.Empty() {
			_, err = w.tasks.restore(tb.Context(), restored)
			if err != nil {
				l.surface(err)
				return nil
			}
		}
		if err == nil {
			return w
		}
		l.surface(err)
	}
	return nil
}

// live is the whole life of a job: checkpoints of every kind of state, some subsumed, a savepoint, an abort, and a second
// coordinator that takes over. Whatever fails, it goes on.
func (l *ledger) live(tb testing.TB, fsys core.FileSystem) {
	ctx := tb.Context()
	first := l.begin(tb, fsys)
	if first != nil {
		for range 3 {
			l.committed(first.c.TriggerCheckpoint(ctx))
		}
		l.committed(first.c.TriggerSavepoint(ctx, ""))
		first.setSend(func(ctx context.Context, t Trigger) error {
			return errors.Join(
				first.ack(ctx, t, Task{counter.ID, 0}),
				first.c.Decline(ctx, t.Decline(Task{counter.ID, 1}, "not now")))
		})
		_, err := first.c.TriggerCheckpoint(ctx)
		l.surface(err)
		first.setSend(nil)
		l.committed(first.c.TriggerCheckpoint(ctx))
	}
	second := l.begin(tb, fsys)
	if first != nil {
		l.committed(first.c.TriggerCheckpoint(ctx))
	}
	if second != nil {
		l.committed(second.c.TriggerCheckpoint(ctx))
		l.committed(second.c.TriggerCheckpoint(ctx))
		l.surface(second.c.Close(ctx))
	}
}

// foreign files that a job finds in its directory and leaves alone.
func foreignFiles() []string {
	return []string{jobDir + "/README", path.Dir(metadataName(1)) + "/notes.txt", jobDir + "/shared/index.html"}
}

func placeForeignFiles(tb testing.TB, fsys core.FileSystem) {
	tb.Helper()
	for _, name := range foreignFiles() {
		writeFile(tb, fsys, name, "foreign")
	}
}

// verify checks what is left of a job against the ledger: everything that was reported is true, every checkpoint is
// restorable to the last byte, and after a restart and a commit nothing else is left.
func (l *ledger) verify(tb testing.TB, fsys core.FileSystem) error {
	found := completeIDs(tb, fsys)
	for _, id := range found {
		writer, err := writerOf(tb, fsys, path.Dir(metadataName(id)))
		if err != nil {
			return fmt.Errorf("checkpoint %d: %w", id, err)
		}
		if l.aborted[made{writer, id}] {
			return fmt.Errorf("checkpoint %d exists, although it was reported as aborted", id)
		}
		if id == l.newest.id && writer != l.newest.epoch {
			return fmt.Errorf("checkpoint %d is of epoch %d, not of %d", id, writer, l.newest.epoch)
		}
	}
	for name := range l.savepoints {
		if _, err := writerOf(tb, fsys, name); err != nil {
			return fmt.Errorf("savepoint %s: %w", name, err)
		}
	}
	if l.newest.id > 0 && (len(found) == 0 || slices.Max(found) < l.newest.id) {
		return fmt.Errorf("checkpoint %v was reported as committed; there is %v", l.newest, found)
	}
	w := startWorld(tb, fsys, func(o *Options) { o.Retain = 2 })
	if len(found) > 0 && !slices.Equal(w.committedIDs(), found[len(found)-1:]) {
		return fmt.Errorf("%v was restored of %v", w.committedIDs(), found)
	}
	retained := append(found, w.checkpoint().ID)
	requireTidy(tb, fsys, retained[max(0, len(retained)-2):], foreignFiles()...)
	return nil
}

// writerOf returns the epoch that wrote a checkpoint, after a look at every byte of it.
func writerOf(tb testing.TB, fsys core.FileSystem, dir string) (uint64, error) {
	tb.Helper()
	w := newWorld(tb, fsys, nil)
	completed, err := core.ResolvePointer(tb.Context(), core.OnlyOn(fsys), core.Qualify(fsys.URI(), dir))
	if err != nil {
		return 0, err
	}
	f, err := w.c.read(tb.Context(), completed)
	if err != nil {
		return 0, err
	}
	return w.tasks.restore(tb.Context(), &f.Restored)
}

func TestALifeWithoutFaults(t *testing.T) {
	fsys := newFS(t)
	placeForeignFiles(t, fsys)
	l := newLedger()
	l.live(t, fsys)
	require.Equal(t, made{2, 9}, l.newest)
	require.Equal(t, map[made]bool{{1, 6}: true}, l.aborted)
	require.Len(t, l.savepoints, 1)
	require.NoError(t, l.verify(t, fsys))
}

func TestALifeWithPackedStates(t *testing.T) {
	fsys := newFS(t)
	placeForeignFiles(t, fsys)
	l := newLedger()
	l.packed = true
	l.live(t, fsys)
	require.Equal(t, made{2, 9}, l.newest)
	require.Equal(t, map[made]bool{{1, 6}: true}, l.aborted)
	require.Len(t, l.savepoints, 1)
	require.NoError(t, l.verify(t, fsys))
}
