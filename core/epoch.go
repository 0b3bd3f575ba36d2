package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// maxClaimAttempts bounds how often a claim is tried again because another claimer took the epoch first.
const maxClaimAttempts = 100

// Owner is the claim to a job directory. Only an owner begins, commits, aborts and disposes of checkpoints.
//
// The claim fences by rename, without a clock and on every file system:
//
//	.epoch-<e>/owner                   exclusively created by the owner of epoch e
//	.epoch-<e>/<claim>/<temporaries>   everything on its way to be published or deleted
//
// A newer owner claims a higher epoch, renames every older epoch directory into its own and removes it. What an older owner
// still tries to publish or delete then starts from, or leads to, a directory that is gone: the rename fails, and the
// older owner gets [ErrFenced]. Nothing is published or taken away by it after the newer Claim has returned.
//
// A savepoint may be on another file system, where a rename cannot reach it: there the owner looks at its claim before and
// after it publishes, and the newer owner removes what is not finished.
//
// <claim> is a fresh random name that one call of Claim makes once. It, and not the epoch directory, is the claim: a
// claimer that was held up since before the older owner's time may make the epoch directory of a lost claim once more.
//
// An Owner is safe for concurrent use. It needs no closing; a claim ends when a newer one is made.
type Owner struct {
	storage  *Storage
	epoch    uint64
	epochDir string
	dir      string // name of the claim's directory, in epochDir
}

// claimRecord is the content of the owner file, for operators to read.
type claimRecord struct {
	Epoch uint64 `json:"epoch"`
	Owner string `json:"owner,omitempty"`
	Claim string `json:"claim"`
}

// Claim makes the job directory with its base directories, takes it over from any earlier owner and fences that. Of several
// that claim at the same time at least one succeeds; the others get ErrFenced or are fenced right afterwards. Disposals
// that an earlier owner had under way are left in a state that a sweep resumes.
func (s *Storage) Claim(ctx context.Context) (*Owner, error) {
	for _, dir := range []string{s.JobDir(), join(s.JobDir(), SharedDirName), join(s.JobDir(), TaskOwnedDirName)} {
		if err := s.fsys.MkdirAll(ctx, dir); err != nil {
			return nil, fmt.Errorf("cannot make the job's directories: %w", err)
		}
	}
	for range maxClaimAttempts {
		epochs, occupied, err := s.listEpochs(ctx)
		if err != nil {
			return nil, err
		}
		owner, err := s.takeEpoch(ctx, nextEpoch(epochs, occupied))
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			continue // another claimer has this epoch, or has swept its directory away
		}
		if err != nil {
			return nil, err
		}
		if err := owner.fenceOlder(ctx); err != nil {
			return nil, err
		}
		return owner, nil
	}
	return nil, &fs.PathError{Op: "claim", Path: s.JobDir(), Err: fmt.Errorf("%w: too many others claim the job at the same time", ErrUnavailable)}
}

// Epoch is the owner's number; a later owner's is higher.
func (o *Owner) Epoch() uint64 { return o.epoch }

// Storage returns the storage that was claimed.
func (o *Owner) Storage() *Storage { return o.storage }

// Check returns ErrFenced if another owner has taken over.
func (o *Owner) Check(ctx context.Context) error {
	_, err := o.storage.fsys.Stat(ctx, o.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return o.fenced(err)
	}
	return err
}

// explain turns the error of an operation through the claim's directory, or of one that a successor got in the way of, into
// ErrFenced if the claim is lost.
func (o *Owner) explain(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, ErrFenced) {
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	ctx, cancel := cleanupContext(ctx)
	defer cancel()
	if check := o.Check(ctx); errors.Is(check, ErrFenced) {
		return o.fenced(err)
	}
	return err
}

func (o *Owner) fenced(cause error) error {
	return &fs.PathError{Op: "claim", Path: o.epochDir, Err: fmt.Errorf("%w: epoch %d is over: %w", ErrFenced, o.epoch, cause)}
}

// listEpochs returns the epochs that have a directory, and those whose name a foreign file occupies.
func (s *Storage) listEpochs(ctx context.Context) (epochs []uint64, occupied map[uint64]bool, err error) {
	occupied = map[uint64]bool{}
	for info, err := range s.fsys.List(ctx, s.JobDir()) {
		if err != nil {
			return nil, nil, err
		}
		switch epoch, ok := parseEpochDirName(info.Name); {
		case !ok:
		case info.IsDir():
			epochs = append(epochs, epoch)
		default:
			occupied[epoch] = true
		}
	}
	return epochs, occupied, nil
}

// nextEpoch is the first free epoch above all that have a directory, 0 if there is none.
func nextEpoch(epochs []uint64, occupied map[uint64]bool) uint64 {
	next := highest(epochs) + 1
	for next != 0 && occupied[next] {
		next++
	}
	return next
}

func highest(epochs []uint64) uint64 {
	var top uint64
	for _, epoch := range epochs {
		top = max(top, epoch)
	}
	return top
}

// takeEpoch claims one epoch. The exclusive creation of the owner file decides; directories alone claim nothing.
func (s *Storage) takeEpoch(ctx context.Context, epoch uint64) (*Owner, error) {
	if epoch == 0 {
		return nil, &fs.PathError{Op: "claim", Path: s.JobDir(), Err: fmt.Errorf("%w: the epochs are used up", fs.ErrInvalid)}
	}
	owner := &Owner{storage: s, epoch: epoch, epochDir: join(s.JobDir(), epochDirName(epoch))}
	claim, err := s.opts.NewUUID()
	if err != nil {
		return nil, PathError("claim", owner.epochDir, err)
	}
	owner.dir = join(owner.epochDir, claim.String())
	record, err := json.Marshal(claimRecord{Epoch: epoch, Owner: s.opts.OwnerName, Claim: claim.String()})
	if err != nil {
		return nil, PathError("claim", owner.epochDir, err)
	}
	if err := s.fsys.MkdirAll(ctx, owner.dir); err != nil {
		return nil, err
	}
	w, err := s.fsys.Create(ctx, join(owner.epochDir, ownerName), s.createOptions())
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(append(record, '\n')); err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return owner, nil
}

// fenceOlder fences every older owner, and gives up if a newer one is there. Both sides create their owner file before
// they list: of two claimers at least one sees the other.
func (o *Owner) fenceOlder(ctx context.Context) error {
	s := o.storage
	for range maxClaimAttempts {
		epochs, _, err := s.listEpochs(ctx)
		if err != nil {
			return err
		}
		if newest := highest(epochs); newest > o.epoch {
			return errors.Join(
				o.fenced(fmt.Errorf("epoch %d was claimed at the same time", newest)),
				s.fsys.RemoveAll(ctx, o.epochDir))
		}
		fencedAny := false
		for _, epoch := range epochs {
			if epoch < o.epoch {
				fencedAny = true
				if err := o.fenceEpoch(ctx, epoch); err != nil {
					return err
				}
			}
		}
		if !fencedAny {
			return o.Check(ctx)
		}
	}
	return &fs.PathError{Op: "claim", Path: o.epochDir, Err: fmt.Errorf("%w: older epochs keep coming back", ErrUnavailable)}
}

// fenceEpoch renames an older epoch directory away and removes it. Only once it is removed can nothing be published from it
// any more, not even through a descriptor of the directory that the older owner holds.
func (o *Owner) fenceEpoch(ctx context.Context, epoch uint64) error {
	fsys := o.storage.fsys
	aside, err := o.trashName("fenced-" + epochDirName(epoch)[1:])
	if err != nil {
		return err
	}
	old := join(o.storage.JobDir(), epochDirName(epoch))
	switch err := fsys.Rename(ctx, old, aside, o.dirRenameMode()); {
	case errors.Is(err, fs.ErrNotExist):
		return o.Check(ctx) // a rival claimer moved it first, or has moved the own claim away
	case err != nil:
		return err
	}
	if err := o.settleMarks(ctx, aside); err != nil {
		return err
	}
	return o.removeTree(ctx, aside)
}

// settleMarks does what the marks of an older owner ask for: it gives back the metadata of checkpoints whose disposal had just
// begun, so that it can be resumed, and removes savepoints that were not finished.
func (o *Owner) settleMarks(ctx context.Context, dir string) error {
	for info, err := range o.storage.fsys.List(ctx, dir) {
		if errors.Is(err, fs.ErrNotExist) {
			// An older owner that was still fencing removes what it had settled itself; or the own claim is lost.
			return o.Check(ctx)
		}
		if err != nil {
			return err
		}
		name := join(dir, info.Name)
		switch id, isMark := parseDisposedMarkName(info.Name); {
		case info.IsDir() && isCheckpointTrash(info.Name):
		case info.IsDir():
			if err := o.settleMarks(ctx, name); err != nil {
				return err
			}
		case isSavepointMarkName(info.Name):
			o.removeUnfinishedSavepoint(ctx, name)
		case isMark:
			to := join(join(o.storage.JobDir(), CheckpointDirName(id)), DisposedName)
			err := o.storage.fsys.Rename(ctx, name, to, RenameNoReplace)
			if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// removeTree removes a directory in the claim's directory. An older owner may still be creating files in it.
func (o *Owner) removeTree(ctx context.Context, dir string) error {
	const attempts = 20
	var err error
	for range attempts {
		if err = o.storage.fsys.RemoveAll(ctx, dir); !errors.Is(err, fs.ErrExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return err
}

// trashName returns a fresh name in the claim's directory.
func (o *Owner) trashName(what string) (string, error) {
	id, err := o.storage.opts.NewUUID()
	if err != nil {
		return "", PathError("claim", o.epochDir, err)
	}
	return join(o.dir, what+"."+id.String()), nil
}

// dirRenameMode avoids asking for a capability that the fresh random names make unnecessary.
func (o *Owner) dirRenameMode() RenameMode {
	if o.storage.fsys.Capabilities().NoReplaceDirs {
		return RenameNoReplace
	}
	return RenameReplace
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
