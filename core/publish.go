package core

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
)

// publish renames the closed temporary and settles a failed rename.
func (a *AtomicFile) publish() error {
	renameErr := a.fsys.Rename(a.ctx, a.opts.Temp, a.opts.Final, a.opts.Mode)
	if renameErr == nil {
		return nil
	}
	ctx, cancel := cleanupContext(a.ctx)
	defer cancel()
	seen, tempErr := a.settle(ctx)
	switch decidePublication(seen, failureOf(renameErr), a.opts.Mode) {
	case notPublished:
		return errors.Join(renameErr, tempErr)
	case published:
		err := confirmDurable(ctx, a.fsys, a.opts)
		if err == nil {
			a.settled = true
			return nil
		}
		renameErr = errors.Join(renameErr, err)
		if a.opts.Mode == RenameReplace {
			return outcomeUnknown(renameErr) // what it replaced is gone, so it must stay
		}
		return a.withdraw(ctx, renameErr)
	case toWithdraw:
		return a.withdraw(ctx, renameErr)
	default:
		return outcomeUnknown(errors.Join(renameErr, tempErr))
	}
}

// withdraw takes a file back that is visible under its final name but may not be durable there.
func (a *AtomicFile) withdraw(ctx context.Context, cause error) error {
	if err := a.fsys.Rename(ctx, a.opts.Final, a.opts.Temp, RenameNoReplace); err != nil {
		return outcomeUnknown(errors.Join(cause, err))
	}
	return errors.Join(cause, tempLeft(removeFile(ctx, a.fsys, a.opts.Temp)))
}

func outcomeUnknown(err error) error {
	return fmt.Errorf("%w, the file may or may not be published: %w", ErrOutcomeUnknown, err)
}

func tempLeft(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("temporary left behind: %w", err)
}

// presence is what a look at a name told.
type presence uint8

const (
	unknown presence = iota
	absent
	present
	removed // it was there, and is not any more because we removed it
)

// publicationFacts is what is seen after a rename that returned an error.
type publicationFacts struct {
	temp  presence // the temporary's name
	final presence // our file under the final name: unknown, absent or present
}

// renameFailure is what the error of a rename says about its effect.
type renameFailure uint8

const (
	// broke: the rename may be visible without being durable.
	broke renameFailure = iota
	// refused: there was nothing to rename, or the name was taken, perhaps by an earlier attempt of this very rename.
	refused
	// unanswered: the storage's answer was lost. The rename may have happened, or may still happen.
	unanswered
	// cutOff: we did not wait for the answer. The rename may have happened, may still happen, and may have broken or break.
	cutOff
)

func failureOf(err error) renameFailure {
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return cutOff
	case errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist):
		return refused
	case errors.Is(err, ErrUnavailable):
		return unanswered
	}
	return broke
}

type publicationDecision uint8

const (
	outcomeOpen publicationDecision = iota
	notPublished
	published
	toWithdraw
)

// decidePublication decides what a rename did that returned an error. Without its temporary it can do nothing any more; with
// it, one that got no answer may still happen. That the temporary was there does not mean that the final name is not: a
// rename made of a link and a removal may stop in between.
//
// Where the file is visible, a lost answer hides a success. But a rename that broke could not be made durable, one that was
// cut off may break unseen, and a second attempt at durability proves nothing then, so the file is taken back. A replaced
// file cannot be taken back, nor can one whose temporary is in the way.
func decidePublication(seen publicationFacts, failure renameFailure, mode RenameMode) publicationDecision {
	switch {
	case seen.temp == unknown || seen.final == unknown:
		return outcomeOpen
	case seen.temp == present && (seen.final == present || failure == unanswered || failure == cutOff):
		return outcomeOpen
	case seen.final == absent:
		return notPublished
	case failure == refused || failure == unanswered:
		return published
	case mode == RenameReplace:
		return outcomeOpen
	}
	return toWithdraw
}

// settle removes the temporary, after which the rename cannot happen any more, and looks at the final name. The error names
// a temporary that is left.
func (a *AtomicFile) settle(ctx context.Context) (publicationFacts, error) {
	var seen publicationFacts
	var left error
	info, infoErr := a.fsys.Stat(ctx, a.opts.Temp)
	err := a.fsys.Remove(ctx, a.opts.Temp)
	switch {
	case err == nil:
		seen.temp = removed
	case noFile(err):
		seen.temp = absent
	default:
		switch _, statErr := a.fsys.Stat(ctx, a.opts.Temp); {
		case statErr == nil:
			seen.temp, left = present, tempLeft(err)
		case noFile(statErr):
			seen.temp = absent
		default:
			return seen, tempLeft(errors.Join(err, statErr))
		}
	}
	seen.final = a.lookAtFinal(ctx)
	if seen.final == present && seen.temp != absent {
		if infoErr != nil {
			seen.final = unknown
		} else {
			seen.final = a.finalIsTemp(ctx, info)
		}
	}
	return seen, left
}

// finalIsTemp tells whether a final file with our bytes is the one that the temporary was, or another's: the same bytes may
// have been published by a rival while our temporary waited. Two names of one file have one time of modification.
func (a *AtomicFile) finalIsTemp(ctx context.Context, temp FileInfo) presence {
	switch final, err := a.fsys.Stat(ctx, a.opts.Final); {
	case noFile(err):
		return absent
	case err != nil:
		return unknown
	case !final.ModTime.Equal(temp.ModTime):
		return absent
	}
	return present
}

// noFile reports whether err says of a good name that there is no file: nothing, or a directory there, or a file on the way.
func noFile(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) }

// lookAtFinal compares the final file with what was written: its name alone does not tell whose it is.
func (a *AtomicFile) lookAtFinal(ctx context.Context) presence {
	r, err := a.fsys.Open(ctx, a.opts.Final)
	switch {
	case noFile(err):
		return absent
	case err != nil:
		return unknown
	}
	defer func() { _ = r.Close() }()
	if r.Size() != a.size {
		return absent
	}
	sum := crc32.New(castagnoli)
	if n, err := io.Copy(sum, r); err != nil || n != a.size {
		return unknown
	}
	if sum.Sum32() != a.crc {
		return absent
	}
	return present
}

// confirmDurable makes the entries of final's directory durable: a durable file beside it takes them along.
func confirmDurable(ctx context.Context, fsys FileSystem, opts AtomicOptions) error {
	id, err := randomUUID()
	if err != nil {
		return err
	}
	name := join(parentDir(opts.Final), barrierPrefix+id.String())
	w, err := fsys.Create(ctx, name, opts.Create)
	if err != nil {
		return removeDoubtful(ctx, fsys, name, err)
	}
	if err := w.Close(); err != nil {
		return errors.Join(err, w.Abort())
	}
	return removeFile(ctx, fsys, name)
}

// removeDoubtful removes a file whose creation failed with err but may have happened; only the caller knows its random name.
// With ctx ended there is no time for that, and err has to tell of it.
func removeDoubtful(ctx context.Context, fsys FileSystem, name string, err error) error {
	if !inDoubt(err) || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, tempLeft(removeFile(ctx, fsys, name)))
}
