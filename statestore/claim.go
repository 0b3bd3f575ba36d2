package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// claim is the right to change a store's directory. It fences as core.Owner does, by rename, without a clock:
//
//	_epoch-<e>/owner                   exclusively created by the owner of epoch e
//	_epoch-<e>/<claim>/<temporaries>   everything on its way to be published or deleted
//
// A newer owner claims a higher epoch, renames every older epoch directory into its own and removes it. What an older owner
// still tries to publish or to delete then starts from, or leads to, a directory that is gone. <claim> is a fresh random
// name that one attempt makes once: it, and not the epoch, is the claim.
//
// A store claims when it first writes, and only if nobody has claimed since it was opened. So a process that only reads
// disturbs nobody, and one that was presumed dead and comes back does not throw out its successor.
type claim struct {
	store    *Store
	epoch    int64
	epochDir string
	dir      string // in epochDir
}

// claimRecord is the content of the owner file, for operators to read.
type claimRecord struct {
	Epoch int64  `json:"epoch"`
	Owner string `json:"owner,omitempty"`
	Claim string `json:"claim"`
}

const (
	ownerName        = "owner"
	maxClaimAttempts = 100
)

// newClaim claims the directory for a store that has seen epoch when it was opened.
func newClaim(ctx context.Context, s *Store, seen int64) (*claim, error) {
	if err := s.fsys.MkdirAll(ctx, s.dir); err != nil {
		return nil, err
	}
	for range maxClaimAttempts {
		l, err := s.list(ctx)
		if err != nil {
			return nil, err
		}
		if err := s.noRival(ctx, l, seen); err != nil {
			return nil, err
		}
		next := l.newestEpoch() + 1
		for slices.Contains(l.Foreign, EpochName(next)) {
			next++ // a file has the name
		}
		c, err := takeEpoch(ctx, s, next)
		switch {
		case errors.Is(err, fs.ErrExist):
			return nil, s.fenced(seen, fmt.Errorf("epoch %d was claimed at the same time", next))
		case errors.Is(err, fs.ErrNotExist):
			continue // another has swept the new directory away before the owner file was in it
		case err != nil:
			return nil, err
		}
		return c, c.fenceOlder(ctx)
	}
	return nil, core.PathError("claim", s.dir, fmt.Errorf("%w: too many others claim the store at the same time", core.ErrUnavailable))
}

// noRival returns core.ErrFenced if another has claimed an epoch above seen. A directory that a failed attempt of this store
// has left is nobody's claim.
func (s *Store) noRival(ctx context.Context, l Listing, seen int64) error {
	for _, epoch := range l.Epochs {
		if epoch <= seen {
			continue
		}
		for info, err := range s.fsys.List(ctx, path.Join(s.dir, EpochName(epoch))) {
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			case info.IsDir() && !s.attempts[info.Name]:
				return s.fenced(seen, fmt.Errorf("epoch %d was claimed since the store was opened", epoch))
			}
		}
	}
	return nil
}

// newestEpoch is the highest epoch that has a directory, 0 if there is none.
func (l Listing) newestEpoch() int64 {
	if len(l.Epochs) == 0 {
		return 0
	}
	return l.Epochs[len(l.Epochs)-1]
}

func (s *Store) fenced(epoch int64, cause error) error {
	return core.PathError("claim", s.dir, fmt.Errorf("%w: epoch %d is over: %w", core.ErrFenced, epoch, cause))
}

// takeEpoch claims one epoch. The exclusive creation of the owner file decides; directories alone claim nothing.
func takeEpoch(ctx context.Context, s *Store, epoch int64) (*claim, error) {
	if epoch < 1 {
		return nil, core.PathError("claim", s.dir, fmt.Errorf("%w: the epochs are used up", fs.ErrInvalid))
	}
	c := &claim{store: s, epoch: epoch, epochDir: path.Join(s.dir, EpochName(epoch))}
	id, err := s.opts.NewUUID()
	if err != nil {
		return nil, core.PathError("claim", c.epochDir, err)
	}
	c.dir = path.Join(c.epochDir, id.String())
	s.attempts[id.String()] = true
	record, err := json.Marshal(claimRecord{Epoch: epoch, Owner: s.opts.OwnerName, Claim: id.String()})
	if err != nil {
		return nil, core.PathError("claim", c.epochDir, err)
	}
	if err := s.fsys.MkdirAll(ctx, c.dir); err != nil {
		return nil, err
	}
	w, err := s.fsys.Create(ctx, path.Join(c.epochDir, ownerName), s.opts.create())
	if err != nil {
		return nil, err // what is left here goes with the epoch when the next owner claims
	}
	if _, err = w.Write(append(record, '\n')); err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return c, nil
}

// check returns core.ErrFenced if another owner has taken over.
func (c *claim) check(ctx context.Context) error {
	_, err := c.store.fsys.Stat(ctx, c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return c.store.fenced(c.epoch, err)
	}
	return err
}

// explain turns the error of an operation through the claim's directory, or of one that a successor got in the way of, into
// core.ErrFenced if the claim is lost.
func (c *claim) explain(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, core.ErrFenced) {
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTime)
	defer cancel()
	if check := c.check(ctx); errors.Is(check, core.ErrFenced) {
		return errors.Join(check, err)
	}
	return err
}

// explainTime bounds the look that tells why an operation failed.
const explainTime = 5 * time.Second

// fenceOlder fences every older owner, and gives up if a newer one is there. Both sides create their owner file before
// they list: of two claimers at least one sees the other.
func (c *claim) fenceOlder(ctx context.Context) error {
	s := c.store
	for range maxClaimAttempts {
		l, err := s.list(ctx)
		if err != nil {
			return err
		}
		if newest := l.newestEpoch(); newest > c.epoch {
			return errors.Join(
				s.fenced(c.epoch, fmt.Errorf("epoch %d was claimed at the same time", newest)),
				s.fsys.RemoveAll(ctx, c.epochDir))
		}
		older := false
		for _, epoch := range l.Epochs {
			if epoch < c.epoch {
				older = true
				if err := c.fenceEpoch(ctx, epoch); err != nil {
					return err
				}
			}
		}
		if !older {
			return c.check(ctx)
		}
	}
	return core.PathError("claim", c.epochDir, fmt.Errorf("%w: older epochs keep coming back", core.ErrUnavailable))
}

// fenceEpoch renames an older epoch directory away and removes it. Only once it is removed can nothing be published from it
// any more, not even through a descriptor of the directory that the older owner holds.
func (c *claim) fenceEpoch(ctx context.Context, epoch int64) error {
	s := c.store
	aside, err := c.fresh("fenced")
	if err != nil {
		return err
	}
	mode := core.RenameReplace // the name is fresh
	if s.fsys.Capabilities().NoReplaceDirs {
		mode = core.RenameNoReplace
	}
	switch err := s.fsys.Rename(ctx, path.Join(s.dir, EpochName(epoch)), aside, mode); {
	case errors.Is(err, fs.ErrNotExist):
		return c.check(ctx) // a rival claimer moved it first, or has moved the own claim away
	case err != nil:
		return err
	}
	const attempts = 20
	for range attempts {
		// The older owner may still be creating files in it.
		if err = s.fsys.RemoveAll(ctx, aside); !errors.Is(err, fs.ErrExist) {
			break
		}
		timer := time.NewTimer(10 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		case <-timer.C:
		}
	}
	return err
}

// fresh returns a new name in the claim's directory. It has no dot: nothing in there is ever taken for a version.
func (c *claim) fresh(what string) (string, error) {
	id, err := c.store.opts.NewUUID()
	if err != nil {
		return "", core.PathError("claim", c.dir, err)
	}
	return path.Join(c.dir, what+"-"+id.String()), nil
}

// remove takes a file of the store away, durably and only as long as the claim holds: it is moved into the claim's
// directory, and deleted there. A file that is gone already is success.
func (c *claim) remove(ctx context.Context, name string) error {
	s := c.store
	trash, err := c.fresh("removed")
	if err != nil {
		return err
	}
	file := path.Join(s.dir, name)
	switch err := s.fsys.Rename(ctx, file, trash, core.RenameNoReplace); {
	case errors.Is(err, fs.ErrNotExist):
		return c.check(ctx)
	case err != nil:
		return c.explain(ctx, err)
	}
	if err := s.fsys.Remove(ctx, trash); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.opts.Logger.WarnContext(ctx, "a removed file stays until the next owner's claim", "file", trash, "error", err)
	}
	return nil
}
