package localfs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// event is one call of the operating system: the operation, the path as far as the tap has seen it opened, and the new path
// of those that have one.
type event struct{ op, path, to string }

func (e event) String() string {
	text := e.op + " " + e.path
	if e.to != "" {
		text += " -> " + e.to
	}
	return text
}

// tap is the real system with a hook before every call, a record of the calls, and a model of what the disk would keep.
type tap struct {
	system

	// hook may fail a call or do it itself: with true, the call is not made and the error is its result. It may also hang.
	hook func(e event) (bool, error)

	// disk, if any, follows the calls that succeed.
	disk *disk

	mu     sync.Mutex
	paths  map[*os.File]string
	events []event
}

func newTap() *tap { return &tap{system: kernel{}, paths: map[*os.File]string{}} }

// record returns the calls so far that have one of the operations, all without; their paths are below top.
func (t *tap) record(top string, ops ...string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, e := range t.events {
		if len(ops) == 0 || slices.Contains(ops, e.op) {
			lines = append(lines, strings.ReplaceAll(e.String(), top, "."))
		}
	}
	return lines
}

func (t *tap) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = nil
}

func (t *tap) pathOf(f *os.File) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name, ok := t.paths[f]; ok {
		return name
	}
	return f.Name()
}

func (t *tap) at(dir *os.File, leaf string) string { return path.Join(t.pathOf(dir), leaf) }

// do makes one call. The disk sees it as soon as it has happened and before anything else does.
func (t *tap) do(e event, real func() error, effect func(*disk)) error {
	t.mu.Lock()
	t.events = append(t.events, e)
	t.mu.Unlock()
	if t.hook != nil {
		if done, err := t.hook(e); done {
			return err
		}
	}
	if t.disk == nil {
		return real()
	}
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	err := real()
	if err == nil && effect != nil {
		effect(t.disk)
		if t.disk.after != nil {
			t.disk.after(e)
		}
	}
	return err
}

func (t *tap) opened(f *os.File, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paths[f] = name
}

func (t *tap) open(tr tree, name string, flag int) (f *os.File, err error) {
	err = t.do(event{op: "open", path: name}, func() error {
		f, err = t.system.open(tr, name, flag)
		return err
	}, nil)
	if err == nil {
		t.opened(f, name)
	}
	return f, err
}

func (t *tap) create(dir *os.File, leaf string, mode fs.FileMode) (f *os.File, err error) {
	name := t.at(dir, leaf)
	err = t.do(event{op: "create", path: name}, func() error {
		f, err = t.system.create(dir, leaf, mode)
		return err
	}, func(d *disk) { d.add(dir, leaf, false) })
	if err == nil {
		t.opened(f, name)
	}
	return f, err
}

func (t *tap) openDir(dir *os.File, leaf string) (f *os.File, err error) {
	name := t.at(dir, leaf)
	err = t.do(event{op: "opendir", path: name}, func() error {
		f, err = t.system.openDir(dir, leaf)
		return err
	}, nil)
	if err == nil {
		t.opened(f, name)
	}
	return f, err
}

func (t *tap) mkdir(dir *os.File, leaf string, mode fs.FileMode) error {
	return t.do(event{op: "mkdir", path: t.at(dir, leaf)}, func() error { return t.system.mkdir(dir, leaf, mode) },
		func(d *disk) { d.add(dir, leaf, true) })
}

func (t *tap) lstat(dir *os.File, leaf string) (e entry, err error) {
	err = t.do(event{op: "lstat", path: t.at(dir, leaf)}, func() error {
		e, err = t.system.lstat(dir, leaf)
		return err
	}, nil)
	return e, err
}

func (t *tap) unlink(dir *os.File, leaf string) error {
	return t.do(event{op: "unlink", path: t.at(dir, leaf)}, func() error { return t.system.unlink(dir, leaf) },
		func(d *disk) { d.set(dir, leaf, nil) })
}

func (t *tap) rmdir(dir *os.File, leaf string) error {
	return t.do(event{op: "rmdir", path: t.at(dir, leaf)}, func() error { return t.system.rmdir(dir, leaf) },
		func(d *disk) { d.set(dir, leaf, nil) })
}

func (t *tap) link(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error {
	return t.do(event{"link", t.at(olddir, oldleaf), t.at(newdir, newleaf)},
		func() error { return t.system.link(olddir, oldleaf, newdir, newleaf) },
		func(d *disk) { d.set(newdir, newleaf, d.get(olddir, oldleaf)) })
}

func (t *tap) rename(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error {
	return t.do(event{"rename", t.at(olddir, oldleaf), t.at(newdir, newleaf)},
		func() error { return t.system.rename(olddir, oldleaf, newdir, newleaf) },
		func(d *disk) { d.move(olddir, oldleaf, newdir, newleaf) })
}

func (t *tap) renameNoReplace(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error {
	return t.do(event{"renameNoReplace", t.at(olddir, oldleaf), t.at(newdir, newleaf)},
		func() error { return t.system.renameNoReplace(olddir, oldleaf, newdir, newleaf) },
		func(d *disk) { d.move(olddir, oldleaf, newdir, newleaf) })
}

func (t *tap) stat(f *os.File) (e entry, err error) {
	err = t.do(event{op: "stat", path: t.pathOf(f)}, func() error {
		e, err = t.system.stat(f)
		return err
	}, nil)
	return e, err
}

func (t *tap) chmod(f *os.File, mode fs.FileMode) error {
	return t.do(event{op: "chmod", path: t.pathOf(f), to: fmt.Sprintf("%#o", uint32(mode.Perm()))},
		func() error { return t.system.chmod(f, mode) }, nil)
}

func (t *tap) names(dir *os.File) (names []string, err error) {
	err = t.do(event{op: "names", path: t.pathOf(dir)}, func() error {
		names, err = t.system.names(dir)
		return err
	}, nil)
	return names, err
}

func (t *tap) write(f *os.File, p []byte) error {
	return t.do(event{op: "write", path: t.pathOf(f)}, func() error { return t.system.write(f, p) },
		func(d *disk) { d.write(f, p) })
}

func (t *tap) startWriteout(f *os.File, offset, length int64) error {
	return t.do(event{op: "startWriteout", path: t.pathOf(f)}, func() error { return t.system.startWriteout(f, offset, length) }, nil)
}

func (t *tap) fsync(f *os.File) error {
	return t.do(event{op: "fsync", path: t.pathOf(f)}, func() error { return t.system.fsync(f) },
		func(d *disk) { d.sync(f) })
}

func (t *tap) read(f *os.File, p []byte, offset int64) (n int, err error) {
	err = t.do(event{op: "read", path: t.pathOf(f)}, func() error {
		n, err = t.system.read(f, p, offset)
		return err
	}, nil)
	return n, err
}

func (t *tap) close(f *os.File) error {
	closed := false
	err := t.do(event{op: "close", path: t.pathOf(f)}, func() error {
		closed = true
		return t.system.close(f)
	}, nil)
	if !closed {
		_ = t.system.close(f) // a close that fails closes all the same
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.paths, f)
	return err
}

// tapped opens a file system on a tap, in a new directory.
func tapped(t testing.TB, opts Options) (f *FS, sys *tap, top string) {
	t.Helper()
	sys, top = newTap(), memoryDir(t)
	f = openFor(t, sys, top, opts)
	sys.reset()
	return f, sys, top
}

// children returns what is in a directory.
func children(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func join(elements ...string) string { return filepath.Join(elements...) }
