package localfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

const (
	// nfsLeftover begins the names under which NFS keeps files that were removed while they were open.
	nfsLeftover = ".nfs"

	// nfsAttempts and nfsWait bound the wait for them: 10 ms, doubled each time, 630 ms in all.
	nfsAttempts = 7
	nfsWait     = 10 * time.Millisecond

	// maxNamed is how many names an error lists.
	maxNamed = 8

	// maxRemoveRounds bounds how often RemoveAll empties a directory that others fill.
	maxRemoveRounds = 8
)

// Remove implements core.FileSystem. The base is refused with fs.ErrInvalid.
func (f *FS) Remove(ctx context.Context, name string) error {
	err := f.checkRemove("remove", name)
	if err != nil {
		return err
	}
	_, err = call(ctx, f, func() (struct{}, error) { return struct{}{}, f.remove(ctx, name) }, nil)
	return pathError("remove", name, err)
}

// RemoveAll implements core.FileSystem. It goes on after a failure; the error names what is left.
func (f *FS) RemoveAll(ctx context.Context, name string) error {
	err := f.checkRemove("removeall", name)
	if err != nil {
		return err
	}
	_, err = call(ctx, f, func() (struct{}, error) { return struct{}{}, f.removeAll(ctx, name) }, nil)
	return pathError("removeall", name, err)
}

func (f *FS) checkRemove(op, name string) error {
	err := core.CheckName(op, f.tree.base, name)
	if err == nil && name == f.tree.base {
		err = core.PathError(op, name, fmt.Errorf("%w: it is the base of the file system", fs.ErrInvalid))
	}
	return err
}

func (f *FS) remove(ctx context.Context, name string) error {
	dir, leaf, err := f.parent(name, lookupFlag)
	if err != nil {
		return missing(err)
	}
	defer f.release(dir)
	e, err := f.sys.lstat(dir, leaf)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.mode.IsDir() {
		return f.removeDir(ctx, dir, leaf)
	}
	return f.sys.unlink(dir, leaf)
}

// removeDir removes an empty directory, and waits a short while if nothing but NFS leftovers are in it.
func (f *FS) removeDir(ctx context.Context, dir *os.File, leaf string) error {
	wait := nfsWait
	for attempt := 1; ; attempt++ {
		err := f.sys.rmdir(dir, leaf)
		if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EBUSY) {
			return err
		}
		leftovers := f.nfsLeftovers(dir, leaf)
		if len(leftovers) == 0 {
			return err
		}
		if attempt == nfsAttempts {
			return fmt.Errorf("%w: removed files that are still open are left: %s", err, strings.Join(firstFew(leftovers), ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
			wait *= 2
		}
	}
}

// nfsLeftovers returns what is in a directory if it is nothing but NFS leftovers.
func (f *FS) nfsLeftovers(dir *os.File, leaf string) []string {
	names, err := f.namesIn(dir, leaf)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if !strings.HasPrefix(name, nfsLeftover) {
			return nil
		}
	}
	return names
}

func (f *FS) namesIn(dir *os.File, leaf string) ([]string, error) {
	inner, err := f.sys.openDir(dir, leaf)
	if err != nil {
		return nil, err
	}
	defer f.release(inner)
	return f.sys.names(inner)
}

func firstFew(names []string) []string {
	if len(names) <= maxNamed {
		return names
	}
	return append(names[:maxNamed:maxNamed], fmt.Sprintf("and %d more", len(names)-maxNamed))
}

func (f *FS) removeAll(ctx context.Context, name string) error {
	dir, leaf, err := f.parent(name, lookupFlag)
	if err = missing(err); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer f.release(dir)
	r := removal{fs: f, ctx: ctx}
	r.remove(dir, leaf, name)
	switch {
	case r.left.total == 0:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &r.left
}

// removal is one RemoveAll.
type removal struct {
	fs   *FS
	ctx  context.Context //nolint:containedctx // of the one call that this is
	left leftError
}

// leftError names what a RemoveAll could not remove, and why.
type leftError struct {
	causes []error // the first few
	total  int
}

func (l *leftError) add(name string, err error) {
	l.total++
	if len(l.causes) < maxNamed {
		l.causes = append(l.causes, fmt.Errorf("%s: %w", name, classify(err)))
	}
}

// Error names everything in one line.
func (l *leftError) Error() string {
	lines := make([]string, len(l.causes))
	for i, cause := range l.causes {
		lines[i] = cause.Error()
	}
	text := "not removed: " + strings.Join(lines, "; ")
	if more := l.total - len(l.causes); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Unwrap returns the causes.
func (l *leftError) Unwrap() []error { return l.causes }

// remove removes one entry with everything below it, and notes what it cannot. Descriptors hold every directory on the way,
// so that nothing outside is reached whatever others do to the names.
func (r *removal) remove(dir *os.File, leaf, name string) {
	e, err := r.fs.sys.lstat(dir, leaf)
	if r.ctx.Err() != nil {
		r.left.total++
		return
	}
	if err == nil && !e.mode.IsDir() {
		err = r.fs.sys.unlink(dir, leaf)
		if errors.Is(err, syscall.EBUSY) && strings.HasPrefix(leaf, nfsLeftover) {
			return // it goes when it is closed; the removal of its directory waits for that
		}
	} else if err == nil {
		err = r.removeTree(dir, leaf, name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.left.add(name, err)
	}
}

// removeTree empties a directory and removes it. What could not be removed in it is noted already, and then it stays.
func (r *removal) removeTree(dir *os.File, leaf, name string) error {
	for round := 1; ; round++ {
		before := r.left.total
		if err := r.empty(dir, leaf, name); err != nil || r.left.total > before {
			return err
		}
		err := r.fs.removeDir(r.ctx, dir, leaf)
		if !errors.Is(err, syscall.ENOTEMPTY) || round == maxRemoveRounds || len(r.fs.nfsLeftovers(dir, leaf)) > 0 {
			return err
		}
	}
}

func (r *removal) empty(dir *os.File, leaf, name string) error {
	inner, err := r.fs.sys.openDir(dir, leaf)
	if err != nil {
		return err
	}
	defer r.fs.release(inner)
	names, err := r.fs.sys.names(inner)
	if err != nil {
		return err
	}
	for _, child := range names {
		r.remove(inner, child, path.Join(name, child))
	}
	return nil
}
