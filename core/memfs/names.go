package memfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// listPage is how many entries List takes at a time, so that changes between pages show, as they do on HDFS.
const listPage = 1000

var (
	errIsBase    = fmt.Errorf("%w: is the base of the file system", fs.ErrInvalid)
	errNoReplace = fmt.Errorf("%w: rename without replacing", errors.ErrUnsupported)
)

// Stat implements core.FileSystem.
func (f *FS) Stat(ctx context.Context, name string) (core.FileInfo, error) {
	if err := f.check(ctx, "stat", name); err != nil {
		return core.FileInfo{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookup(name)
	if err != nil {
		return core.FileInfo{}, core.PathError("stat", name, err)
	}
	return n.info(path.Base(name)), nil
}

// List implements core.FileSystem. It takes the entries in pages; a directory that is removed or moved away between two
// pages ends the listing with fs.ErrNotExist.
func (f *FS) List(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
	return func(yield func(core.FileInfo, error) bool) {
		var first *node
		last := ""
		for {
			page, n, err := f.page(ctx, dir, first, last)
			if err != nil {
				yield(core.FileInfo{}, core.PathError("list", dir, err))
				return
			}
			if len(page) == 0 {
				return
			}
			for _, info := range page {
				if err := ctx.Err(); err != nil {
					yield(core.FileInfo{}, core.PathError("list", dir, err))
					return
				}
				if !yield(info, nil) {
					return
				}
			}
			first, last = n, page[len(page)-1].Name
		}
	}
}

func (f *FS) page(ctx context.Context, dir string, first *node, last string) ([]core.FileInfo, *node, error) {
	if err := f.check(ctx, "list", dir); err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookupDir(dir)
	if err != nil {
		return nil, nil, err
	}
	if first != nil && n != first {
		return nil, nil, fmt.Errorf("%w: the directory was replaced during the listing", fs.ErrNotExist)
	}
	var page []core.FileInfo
	for _, e := range n.entries.after(last, listPage) {
		page = append(page, e.node.info(e.name))
	}
	return page, n, nil
}

// MkdirAll implements core.FileSystem.
func (f *FS) MkdirAll(ctx context.Context, dir string) error {
	if err := f.check(ctx, "mkdir", dir); err != nil {
		return err
	}
	for {
		parent, made, name, err := f.mkdirNext(dir)
		if err != nil {
			return core.PathError("mkdir", dir, err)
		}
		if made == nil {
			return nil
		}
		f.mu.Lock()
		f.journal.syncEntries(parent)
		f.unlockAfter(Mutation{Op: OpMkdir, Step: EntryDurable, Name: name})
	}
}

// mkdirNext makes the highest missing directory on the way to dir and returns it with its parent and name; none if dir is
// there, which it then makes sure will stay: the call that made it may not have come to its end.
func (f *FS) mkdirNext(dir string) (parent, made *node, name string, err error) {
	f.mu.Lock()
	n := f.root
	for _, component := range components(dir) {
		name += "/" + component
		next := n.entries.get(component)
		if next == nil {
			made = newDir(f.now())
			n.link(component, made)
			f.journal.add(f.root, change{edits: []edit{{slot{n, component}, made}}})
			f.unlockAfter(Mutation{Op: OpMkdir, Step: Applied, Name: name})
			return n, made, name, nil
		}
		if !next.isDir() {
			f.mu.Unlock()
			return nil, nil, name, fmt.Errorf("%w: %s", errNotDir, name)
		}
		n = next
	}
	f.journal.syncLinks(n)
	f.mu.Unlock()
	return nil, nil, name, nil
}

// Rename implements core.FileSystem.
func (f *FS) Rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	if err := f.check(ctx, "rename", oldname); err != nil {
		return err
	}
	if err := core.CheckName("rename", f.base, newname); err != nil {
		return core.RenameError(oldname, newname, errors.Unwrap(err))
	}
	if mode > core.RenameReplace {
		return core.RenameError(oldname, newname, fmt.Errorf("%w: mode %d", fs.ErrInvalid, mode))
	}
	f.mu.Lock()
	from, to, err := f.planRename(oldname, newname, mode)
	if err != nil || from == to {
		f.mu.Unlock()
		if err != nil {
			err = core.RenameError(oldname, newname, err)
		}
		return err
	}
	n := from.dir.entries.get(from.name)
	from.dir.unlink(from.name)
	to.dir.link(to.name, n)
	f.journal.add(f.root, change{edits: []edit{{from, nil}, {to, n}}, movesDir: n.isDir()})
	f.unlockAfter(Mutation{Op: OpRename, Step: Applied, Name: oldname, NewName: newname})
	f.mu.Lock()
	f.journal.syncEntries(from.dir, to.dir)
	f.unlockAfter(Mutation{Op: OpRename, Step: EntryDurable, Name: oldname, NewName: newname})
	return nil
}

// planRename decides whether a rename is allowed. Equal slots mean that there is nothing to do. The error is bare.
func (f *FS) planRename(oldname, newname string, mode core.RenameMode) (from, to slot, err error) {
	if mode == core.RenameNoReplace && !f.caps.NoReplaceFiles && !f.caps.NoReplaceDirs {
		return from, to, errNoReplace
	}
	n, err := f.lookup(oldname)
	if err != nil {
		return from, to, err
	}
	if mode == core.RenameNoReplace && (n.isDir() && !f.caps.NoReplaceDirs || !n.isDir() && !f.caps.NoReplaceFiles) {
		return from, to, errNoReplace
	}
	if oldname == newname {
		if mode == core.RenameNoReplace || n.isDir() {
			err = fs.ErrExist
		}
		return from, to, err
	}
	if n.isDir() && core.Within(oldname, newname) {
		return from, to, fmt.Errorf("%w: below itself", fs.ErrInvalid)
	}
	if newname == f.base {
		return from, to, fs.ErrExist
	}
	dir, err := f.lookupDir(path.Dir(newname))
	if err != nil {
		return from, to, err
	}
	from, to = slot{n.parent, n.name}, slot{dir, path.Base(newname)}
	old := dir.entries.get(to.name)
	if old != nil && (mode == core.RenameNoReplace || n.isDir() || old.isDir()) {
		return from, to, fs.ErrExist
	}
	return from, to, nil
}

// Remove implements core.FileSystem. The base is refused with fs.ErrInvalid.
func (f *FS) Remove(ctx context.Context, name string) error {
	if err := f.check(ctx, "remove", name); err != nil {
		return err
	}
	f.mu.Lock()
	n, err := f.lookup(name)
	switch {
	case name == f.base:
		err = errIsBase
	case err == nil && len(n.entries) > 0:
		err = fmt.Errorf("%w: the directory is not empty", fs.ErrExist)
	}
	if err != nil {
		f.mu.Unlock()
		return core.PathError("remove", name, err)
	}
	f.removeEntry(n.parent, n.name)
	f.unlockAfter(Mutation{Op: OpRemove, Step: Applied, Name: name})
	return nil
}

// RemoveAll implements core.FileSystem. It removes one name after the other, deepest first.
func (f *FS) RemoveAll(ctx context.Context, name string) error {
	if err := f.check(ctx, "removeall", name); err != nil {
		return err
	}
	if name == f.base {
		return core.PathError("removeall", name, errIsBase)
	}
	for {
		done, err := f.removeNext(name)
		if done || err != nil {
			return core.PathError("removeall", name, err)
		}
		if err := ctx.Err(); err != nil {
			return core.PathError("removeall", name, err)
		}
	}
}

// removeNext removes one name at or below name that has nothing below it, and reports whether it was name itself.
func (f *FS) removeNext(name string) (done bool, err error) {
	f.mu.Lock()
	n, err := f.lookup(name)
	if err != nil {
		f.mu.Unlock()
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return false, err
	}
	leaf := name
	for len(n.entries) > 0 {
		last := n.entries[len(n.entries)-1]
		n, leaf = last.node, leaf+"/"+last.name
	}
	f.removeEntry(n.parent, n.name)
	f.unlockAfter(Mutation{Op: OpRemove, Step: Applied, Name: leaf})
	return leaf == name, nil
}

// removeEntry takes a name out of the present state. The file system must be locked.
func (f *FS) removeEntry(dir *node, name string) {
	dir.unlink(name)
	f.journal.add(f.root, change{edits: []edit{{slot{dir, name}, nil}}})
}
