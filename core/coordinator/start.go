package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Start takes the job directory over, so that every earlier coordinator of the job is fenced, and finds the checkpoint to
// restore: that of Options.Restore, by default the newest of the job directory. Without one the result is Empty, and the job
// begins without state. It also
//
//   - checks that the checkpoint fits the operators: fs.ErrInvalid, see Restore.AllowNonRestoredState;
//   - removes what earlier coordinators have left behind, unless Options.NoSweep is set. What cannot be removed is logged. Nothing
//     is removed before the checkpoint is read;
//   - repeats OnCommitted for the checkpoint, and OnAborted for those that were certainly never completed: the ones without
//     metadata above it and above every other one that is or was complete;
//   - takes over the other checkpoints, so that they are deleted when they are not retained any more.
//
// A checkpoint that is damaged is core.ErrCorrupt or core.ErrUnsupportedVersion, see Restore.AllowOlder. After an error Start
// may be called again, except after core.ErrFenced: then yet another coordinator has taken over. Once it has succeeded, calling
// it again is fs.ErrInvalid.
func (c *Coordinator) Start(ctx context.Context) (*Restored, error) {
	if err := c.beginStart(); err != nil {
		return nil, err
	}
	defer c.leave()
	restored, err := c.start(ctx)
	c.mu.Lock()
	c.phase = created
	if err == nil {
		c.phase, err = started, c.ended
	}
	c.mu.Unlock()
	if err != nil {
		return nil, c.noteFence(err)
	}
	return restored, nil
}

func (c *Coordinator) beginStart() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return c.ended
	case c.phase != created:
		return errStarted
	}
	c.phase = starting
	c.calls++
	return nil
}

func (c *Coordinator) start(ctx context.Context) (*Restored, error) {
	owner, err := c.opts.Storage.Claim(ctx)
	if err != nil {
		return nil, err
	}
	c.observe(Event{Type: EventClaimed})
	// Nobody else completes anything any more. What is restored is read before anything is deleted, and the list is made before
	// the sweep, which removes directories whose ids must not be used again.
	entries, err := core.ListCheckpoints(ctx, c.opts.Storage.FileSystem(), c.opts.Storage.JobDir())
	if err != nil {
		return nil, err
	}
	found, err := c.restore(ctx, entries)
	if err != nil {
		return nil, err
	}
	if err := c.match(found); err != nil {
		return nil, err
	}
	history, err := c.settle(ctx, owner, entries, found)
	if err != nil {
		return nil, err
	}
	next, err := nextID(entries, found.ID)
	if err != nil {
		return nil, err
	}
	if err := owner.Check(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.owner, c.nextID, c.complete, c.blind, c.base = owner, next, history.complete, history.blind, history.base
	c.registry, c.claimed = history.registry, history.claimed
	c.mu.Unlock()
	return &found.Restored, c.repeat(ctx, owner, entries, found)
}

// settle makes durable whose the restored checkpoint is, removes leftovers, and takes over the checkpoints of the job directory.
func (c *Coordinator) settle(ctx context.Context, owner *core.Owner, entries []core.CheckpointEntry, f *found) (history, error) {
	known, err := c.readClaims(ctx)
	if err != nil {
		return history{}, err
	}
	if known, err = c.claim(ctx, owner, known, f); err != nil {
		return history{}, err
	}
	others, err := c.readForeign(ctx, owner, known)
	if err != nil {
		return history{}, err
	}
	if err := c.sweep(ctx, owner, f, others); err != nil {
		return history{}, err
	}
	h, err := c.takeOver(ctx, entries, f, known)
	if err != nil {
		return h, err
	}
	if !f.own && f.claim == NoClaim {
		others.objects = append(others.objects, f.objects...)
	}
	h.registry.hold(foreignID, others.objects, nil)
	h.registry.hold(claimedID, others.claimedObjects, nil)
	h.registry.unclaimed[foreignID] = true
	h.claimed = others.claimed
	h.blind = h.blind || others.blind
	return h, nil
}

// sweep removes leftovers. Only the loss of the claim stops the start.
func (c *Coordinator) sweep(ctx context.Context, owner *core.Owner, restored *found, others foreign) error {
	if c.opts.NoSweep {
		return nil
	}
	if c.needsUnlisted(restored) || others.blind || c.inJobDir(others.objects) || c.inJobDir(others.claimedObjects) {
		c.opts.Logger.Warn("leftovers are not removed: a restored checkpoint that is not in the job directory may need files there",
			slog.String("checkpoint", restored.Pointer))
		return nil
	}
	report, err := owner.Sweep(ctx, metadata.ReadObjects)
	event := Event{Type: EventSwept, Err: err}
	if report != nil {
		event.Files = len(report.Removed) + len(report.Resumed) + len(report.Abandoned)
		for _, kept := range report.Kept {
			c.opts.Logger.Info("kept by the sweep", slog.String("path", kept.Path), slog.String("reason", kept.Reason))
		}
	}
	c.observe(event)
	if errors.Is(err, core.ErrFenced) {
		return err
	}
	if err != nil {
		c.opts.Logger.Warn("leftovers of earlier coordinators could not be removed; the next start tries again", slog.Any("error", err))
	}
	return nil
}

// needsUnlisted reports whether a checkpoint needs files of the job directory without being listed there, such as one whose
// directory was renamed or copied: a sweep would take them for garbage.
func (c *Coordinator) needsUnlisted(f *found) bool {
	return !f.own && c.inJobDir(f.objects)
}

// inJobDir reports whether any of the objects is in the job directory.
func (c *Coordinator) inJobDir(objects []core.Object) bool {
	return slices.ContainsFunc(objects, func(o core.Object) bool {
		_, name, err := core.SplitQualified(o.Path)
		return err != nil || core.Within(c.opts.Storage.JobDir(), name)
	})
}

// found is a checkpoint that was read.
type found struct {
	Restored
	completed *core.Completed // nil if nothing is restored
	objects   []core.Object
	own       bool // it is one of the job directory
	claim     ClaimMode
	time      time.Time
}

// restore finds and reads the checkpoint to restore.
func (c *Coordinator) restore(ctx context.Context, entries []core.CheckpointEntry) (*found, error) {
	if pointer := c.opts.Restore.Pointer; pointer != "" {
		completed, err := core.ResolvePointer(ctx, c.opts.Storage.Opener(), pointer)
		if err != nil {
			return nil, err
		}
		return c.read(ctx, completed)
	}
	candidates := planRestore(entries, c.opts.Restore)
	for i, entry := range candidates {
		f, err := c.read(ctx, entry.Completed)
		if err == nil {
			return f, nil
		}
		if !isDamage(err) || i == len(candidates)-1 {
			return nil, fmt.Errorf("cannot restore checkpoint %d: %w", entry.ID, err)
		}
	}
	return &found{Restored: Restored{open: c.opts.Storage.Opener()}}, nil
}

// match checks that a checkpoint fits the job.
func (c *Coordinator) match(f *found) error {
	if f.Empty() {
		return nil
	}
	dropped, err := matchOperators(f.Checkpoint, c.opts.Operators, c.opts.Restore.AllowNonRestoredState)
	if err != nil {
		return fmt.Errorf("checkpoint %s does not fit the job: %w", f.Pointer, err)
	}
	for _, operator := range dropped {
		c.opts.Logger.Warn("state is dropped: the job does not have its operator", slog.String("operator", operator))
	}
	return nil
}

// skip says that a damaged checkpoint is not used.
func (c *Coordinator) skip(id int64, err error) {
	c.observe(Event{Type: EventSkipped, CheckpointID: id, Err: err})
	c.opts.Logger.Warn("a damaged checkpoint is left as it is", slog.Int64("checkpoint", id), slog.Any("error", err))
}

// read reads and verifies the metadata of a checkpoint.
func (c *Coordinator) read(ctx context.Context, completed *core.Completed) (*found, error) {
	data, err := completed.ReadMetadata(ctx)
	if err != nil {
		return nil, err
	}
	checkpoint, err := metadata.Parse(data, completed.Pointer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", completed.Metadata.Path, err)
	}
	objects, err := metadata.Objects(checkpoint)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", completed.Metadata.Path, err)
	}
	f := &found{completed: completed, objects: objects, own: c.isOwn(completed)}
	f.Restored = Restored{
		Checkpoint: checkpoint, ID: checkpoint.ID, Pointer: completed.Pointer, open: c.opts.Storage.Opener(),
	}
	if id, _ := completed.ID(); f.own && id != checkpoint.ID {
		return nil, fmt.Errorf("%s: %w: it is the metadata of checkpoint %d", completed.Metadata.Path, core.ErrCorrupt, checkpoint.ID)
	}
	if checkpoint.Properties.IsSavepoint() || checkpoint.Footer != nil && checkpoint.Footer.Kind == metadata.KindSavepoint {
		f.Kind = Savepoint
	}
	if checkpoint.Footer != nil {
		f.time = checkpoint.Footer.Created
	}
	return f, nil
}

// isOwn reports whether a checkpoint is one of the job directory.
func (c *Coordinator) isOwn(completed *core.Completed) bool {
	_, named := completed.ID()
	return named && completed.FileSystem().URI() == c.opts.Storage.FileSystem().URI() &&
		path.Dir(completed.Dir()) == c.opts.Storage.JobDir() && path.Base(completed.Metadata.Path) == core.MetadataName
}

var (
	errStarted   = fmt.Errorf("%w: the coordinator was started before", fs.ErrInvalid)
	errAbandoned = errors.New("it was begun by an earlier coordinator and never completed")
)

// history is what is taken over of the job directory.
type history struct {
	complete []complete
	registry *registry
	claimed  []core.RestoredMark
	blind    bool
	base     int64
}

// takeOver reads the complete checkpoints of the job directory, so that what they need is known. Damaged ones are left to the
// operator: it is not known what they need, so nothing shared is deleted beside them.
//
// Those that are marked as somebody else's are never deleted.
func (c *Coordinator) takeOver(ctx context.Context, entries []core.CheckpointEntry, restored *found, known claims) (history, error) {
	h := history{registry: newRegistry()}
	for _, entry := range entries {
		if entry.State != core.Complete {
			continue
		}
		f := restored
		if !restored.own || restored.ID != entry.ID {
			var err error
			if f, err = c.read(ctx, entry.Completed); err != nil {
				if !isDamage(err) {
					return h, err
				}
				h.blind = true
				c.skip(entry.ID, err)
				continue
			}
		}
		h.registry.hold(entry.ID, f.objects, statesOfAll(f.Checkpoint))
		if known.unclaimed(f.Pointer) {
			h.registry.unclaimed[entry.ID] = true
			continue
		}
		h.complete = append(h.complete, complete{id: entry.ID, objects: f.objects})
	}
	h.base = planBase(restored.claim, restored.own, restored.ID)
	return h, nil
}

// repeat makes the callbacks that an earlier coordinator may not have made.
func (c *Coordinator) repeat(ctx context.Context, owner *core.Owner, entries []core.CheckpointEntry, f *found) error {
	if !f.Empty() {
		c.observe(Event{Type: EventRestored, CheckpointID: f.ID, Kind: f.Kind, StateSize: f.Checkpoint.StateSize()})
		err := c.report(ctx, Committed{
			ID: f.ID, Epoch: owner.Epoch(), Kind: f.Kind, Pointer: f.Pointer, Metadata: f.completed.Metadata,
			Timestamp: f.time, StateSize: f.Checkpoint.StateSize(), Repeated: true,
		})
		if err != nil {
			return err
		}
	}
	if c.opts.OnAborted == nil {
		return nil
	}
	for _, id := range planAborted(entries, f) {
		c.opts.OnAborted(ctx, Aborted{ID: id, Epoch: owner.Epoch(), Reason: errAbandoned, Repeated: true})
	}
	return nil
}
