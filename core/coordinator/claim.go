package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// ClaimMode says whose a restored checkpoint or savepoint is from then on.
type ClaimMode uint8

const (
	// ClaimByPlace is Claim for a checkpoint of the job directory that is not marked as somebody else's, and NoClaim for all others.
	ClaimByPlace ClaimMode = iota

	// Claim: the coordinator owns it. It counts as the oldest of the retained ones, and is deleted when it is not retained any
	// more, be it a savepoint or a checkpoint of another job; nobody else may use it any more. The tasks may go on using the shared
	// files of one that is in the job directory; a job that was restored from elsewhere writes everything anew with its first
	// checkpoint, so that its files are in one place and in one hand.
	Claim

	// NoClaim: it stays somebody else's. The first checkpoint is full: Trigger.Base is 0, and state that refers to files of the
	// restored one is refused. Once that is committed nothing of the restored one is needed, and nothing of it is ever
	// deleted, also after a restart.
	NoClaim
)

// Flink's third mode, LEGACY, is refused: there the job goes on using files that it neither owns nor keeps from being deleted, and
// nobody ever deletes them. (Flink has deprecated it for that.)

// String returns the name of the constant.
func (m ClaimMode) String() string {
	switch m {
	case ClaimByPlace:
		return "ClaimByPlace"
	case Claim:
		return "Claim"
	case NoClaim:
		return "NoClaim"
	}
	return "invalid"
}

// planClaim decides whose a restored checkpoint is: own tells that it is one of the job directory, marked that it was restored
// before as somebody else's.
func planClaim(mode ClaimMode, own, marked bool) ClaimMode {
	switch {
	case mode != ClaimByPlace:
		return mode
	case own && !marked:
		return Claim
	}
	return NoClaim
}

// planBase returns the checkpoint whose shared files the first checkpoint may refer to, 0 for none.
func planBase(mode ClaimMode, own bool, id int64) int64 {
	if mode == Claim && own {
		return id
	}
	return 0
}

// claims are the marks of the job directory.
type claims struct {
	marks []core.RestoredMark
}

func (c *claims) find(pointer string) (core.RestoredMark, bool) {
	i := slices.IndexFunc(c.marks, func(m core.RestoredMark) bool { return m.Pointer == pointer })
	if i < 0 {
		return core.RestoredMark{}, false
	}
	return c.marks[i], true
}

// unclaimed reports whether a checkpoint is marked as somebody else's.
func (c *claims) unclaimed(pointer string) bool {
	mark, found := c.find(pointer)
	return found && !mark.Claimed
}

// claim makes durable whose the restored checkpoint is, and returns all marks as they are then. That a checkpoint of the job
// directory is its own needs no mark, nor that one which needs nothing there is somebody else's.
func (c *Coordinator) claim(ctx context.Context, owner *core.Owner, known claims, f *found) (claims, error) {
	if f.Empty() {
		return known, nil
	}
	f.claim = planClaim(c.opts.Restore.Claim, f.own, known.unclaimed(f.Pointer))
	claimed := f.claim == Claim
	needed := claimed != f.own
	if !claimed && !f.own {
		needed = c.needsUnlisted(f)
	}
	old, marked := known.find(f.Pointer)
	if !marked && !needed || marked && needed && old.Claimed == claimed {
		return known, nil
	}
	if needed {
		if err := owner.MarkRestored(ctx, core.RestoredMark{Pointer: f.Pointer, Claimed: claimed}); err != nil {
			return known, err
		}
	}
	if marked {
		if err := owner.ForgetRestored(ctx, old); err != nil {
			return known, err
		}
	}
	return c.readClaims(ctx)
}

func (c *Coordinator) readClaims(ctx context.Context) (claims, error) {
	marks, err := c.opts.Storage.RestoredMarks(ctx)
	return claims{marks: marks}, err
}

// foreign are checkpoints outside of the job directory that are marked in it: what they need, and if that is known.
type foreign struct {
	objects        []core.Object // of those that are somebody else's
	claimed        []core.RestoredMark
	claimedObjects []core.Object
	blind          bool
}

// readForeign reads the marked checkpoints that are not in the job directory. The mark of one that is somebody else's and gone is
// dropped.
func (c *Coordinator) readForeign(ctx context.Context, owner *core.Owner, known claims) (foreign, error) {
	var all foreign
	for _, mark := range known.marks {
		completed, err := core.ResolvePointer(ctx, c.opts.Storage.Opener(), mark.Pointer)
		if err == nil && c.isOwn(completed) {
			continue
		}
		var f *found
		if err == nil {
			f, err = c.read(ctx, completed)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist) && !mark.Claimed:
			if err := owner.ForgetRestored(ctx, mark); err != nil {
				return all, err
			}
			continue
		case mark.Claimed && err != nil:
			// What is there to delete, perhaps the rest of a disposal that was interrupted, deleteClaimed finds out. Nobody needs it.
			all.claimed = append(all.claimed, mark)
		case err == nil && mark.Claimed:
			all.claimed = append(all.claimed, mark)
			all.claimedObjects = append(all.claimedObjects, f.objects...)
		case err == nil:
			all.objects = append(all.objects, f.objects...)
		case isDamage(err):
			all.blind = true
			c.opts.Logger.Warn("a checkpoint that the job was restored from is damaged: no shared file is deleted",
				slog.String("checkpoint", mark.Pointer), slog.Any("error", err))
		default:
			return all, err
		}
	}
	return all, nil
}

// Under these the registry holds what checkpoints outside of the job directory need, those of others and the claimed ones. No
// checkpoint has them as id.
const (
	foreignID = -1
	claimedID = -2
)

// deleteClaimed deletes claimed checkpoints outside of the job directory, once as many newer ones as are to be retained exist. They
// are older than all of the job directory. It runs in the turn of the commit.
func (c *Coordinator) deleteClaimed(ctx context.Context) {
	c.mu.Lock()
	claimed := c.claimed
	if len(c.complete) < c.opts.Retain || c.blind {
		claimed = nil
	}
	c.mu.Unlock()
	for _, mark := range claimed {
		err := c.deleteOne(ctx, mark)
		if errors.Is(c.noteFence(err), core.ErrFenced) {
			return
		}
		if err != nil {
			c.leftBehind(0, "a claimed checkpoint could not be deleted; the next commit tries again", fmt.Errorf("%s: %w", mark.Pointer, err))
			continue
		}
		c.mu.Lock()
		c.claimed = slices.DeleteFunc(slices.Clone(c.claimed), func(m core.RestoredMark) bool { return m == mark })
		c.mu.Unlock()
	}
}

// deleteOne deletes a claimed checkpoint and then its mark.
func (c *Coordinator) deleteOne(ctx context.Context, mark core.RestoredMark) error {
	if err := c.owner.Check(ctx); err != nil {
		return err
	}
	completed, err := core.ResolvePointer(ctx, c.opts.Storage.Opener(), mark.Pointer)
	if errors.Is(err, fs.ErrNotExist) {
		// It may be that its disposal had begun.
		err = c.resumeClaimed(ctx, mark)
	} else if err == nil {
		err = c.disposeForeign(ctx, completed.FileSystem(), completed.Dir())
	}
	if err != nil {
		return err
	}
	return c.owner.ForgetRestored(ctx, mark)
}

func (c *Coordinator) resumeClaimed(ctx context.Context, mark core.RestoredMark) error {
	fsys, dir, err := c.opts.Storage.Opener()(ctx, mark.Pointer)
	if err != nil {
		return err
	}
	return c.disposeForeign(ctx, fsys, dir)
}

func (c *Coordinator) disposeForeign(ctx context.Context, fsys core.FileSystem, dir string) error {
	c.mu.Lock()
	protected := c.registry.protected(c.opts.Storage.FileSystem().URI(), map[int64]bool{claimedID: true})
	c.mu.Unlock()
	report, err := core.Dispose(ctx, fsys, dir, core.DisposeOptions{Read: metadata.ReadObjects, Protected: protected})
	if err != nil {
		return err
	}
	c.observe(Event{Type: EventSubsumed, Files: len(report.Removed)})
	for _, kept := range report.Kept {
		c.opts.Logger.Info("kept while deleting a claimed checkpoint", slog.String("path", kept.Path), slog.String("reason", kept.Reason))
	}
	return nil
}
