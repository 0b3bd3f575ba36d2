package faultfs

import (
	"context"
	"iter"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// run makes one call that has a single effect. Undo releases what do acquired and the caller will not get.
func (f *FS) run(ctx context.Context, c Call, do func() error, undo func()) error {
	c, fault := f.begin(c)
	if fault.After {
		if err := do(); err != nil {
			return err
		}
	}
	err := fault.hold(ctx, nil)
	if err == nil {
		err = fault.Err
	}
	switch {
	case err == nil && !fault.After:
		return do()
	case err != nil && fault.After && undo != nil:
		undo()
	}
	return c.wrap(err)
}

// Create implements core.FileSystem.
func (f *FS) Create(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
	w := &writer{fs: f, ctx: ctx, name: name, broken: make(chan struct{})}
	err := f.run(ctx, Call{Op: OpCreate, Name: name}, func() (err error) {
		w.inner, err = f.inner.Create(ctx, name, opts)
		return err
	}, func() { _ = w.inner.Close() }) // closed, not aborted: the file stays, as the fault wants it
	if err != nil {
		return nil, err
	}
	f.opened(w)
	return w, nil
}

// Open implements core.FileSystem.
func (f *FS) Open(ctx context.Context, name string) (core.Reader, error) {
	r := &reader{fs: f, ctx: ctx, name: name}
	err := f.run(ctx, Call{Op: OpOpen, Name: name}, func() (err error) {
		r.inner, err = f.inner.Open(ctx, name)
		return err
	}, func() { _ = r.inner.Close() }) // nothing was written that its error could tell of
	if err != nil {
		return nil, err
	}
	f.opened(r)
	return r, nil
}

// Stat implements core.FileSystem.
func (f *FS) Stat(ctx context.Context, name string) (core.FileInfo, error) {
	var info core.FileInfo
	err := f.run(ctx, Call{Op: OpStat, Name: name}, func() (err error) {
		info, err = f.inner.Stat(ctx, name)
		return err
	}, nil)
	if err != nil {
		return core.FileInfo{}, err
	}
	return info, nil
}

// List implements core.FileSystem. The call is counted when the iteration begins.
func (f *FS) List(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
	return func(yield func(core.FileInfo, error) bool) {
		c, fault := f.begin(Call{Op: OpList, Name: dir})
		if !fault.After {
			if err := fault.hold(ctx, nil); err != nil {
				yield(core.FileInfo{}, c.wrap(err))
				return
			}
			if fault.Tear <= 0 && fault.Err != nil {
				yield(core.FileInfo{}, c.wrap(fault.Err))
				return
			}
		}
		seen := 0
		for info, err := range f.inner.List(ctx, dir) {
			if err == nil && fault.Tear > 0 && seen == fault.Tear {
				yield(core.FileInfo{}, c.wrap(fault.cause()))
				return
			}
			if !yield(info, err) || err != nil {
				return
			}
			seen++
		}
		err := error(nil)
		switch {
		case fault.After:
			if err = fault.hold(ctx, nil); err == nil {
				err = fault.Err
			}
		case fault.Tear > 0:
			err = fault.cause()
		}
		if err != nil {
			yield(core.FileInfo{}, c.wrap(err))
		}
	}
}

// MkdirAll implements core.FileSystem.
func (f *FS) MkdirAll(ctx context.Context, dir string) error {
	return f.run(ctx, Call{Op: OpMkdirAll, Name: dir}, func() error { return f.inner.MkdirAll(ctx, dir) }, nil)
}

// Rename implements core.FileSystem.
func (f *FS) Rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	c := Call{Op: OpRename, Name: oldname, NewName: newname}
	return f.run(ctx, c, func() error { return f.inner.Rename(ctx, oldname, newname, mode) }, nil)
}

// Remove implements core.FileSystem.
func (f *FS) Remove(ctx context.Context, name string) error {
	return f.run(ctx, Call{Op: OpRemove, Name: name}, func() error { return f.inner.Remove(ctx, name) }, nil)
}

// RemoveAll implements core.FileSystem.
func (f *FS) RemoveAll(ctx context.Context, name string) error {
	return f.run(ctx, Call{Op: OpRemoveAll, Name: name}, func() error { return f.inner.RemoveAll(ctx, name) }, nil)
}
