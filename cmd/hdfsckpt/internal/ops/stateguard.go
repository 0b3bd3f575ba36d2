package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
)

// quietTime is how long a checkpoint must not have changed for work on it to be safe without --offline.
const quietTime = 10 * time.Minute

// lastChange finds the newest time in directories and of their entries.
func lastChange(ctx context.Context, fsys core.FileSystem, dirs []string) (newest time.Time, where string, err error) {
	note := func(name string, at time.Time) {
		if at.After(newest) {
			newest, where = at, name
		}
	}
	for _, dir := range dirs {
		info, err := fsys.Stat(ctx, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return newest, where, err
		}
		note(dir, info.ModTime)
		for info, err := range fsys.List(ctx, dir) {
			if err != nil {
				return newest, where, err
			}
			note(path.Join(dir, info.Name), info.ModTime)
		}
	}
	return newest, where, nil
}

// stillBusy is the refusal to work on a checkpoint that has changed lately, nil if it has not. A time in the future is of
// another clock, and says nothing about who works here.
func stillBusy(newest time.Time, where string, now time.Time) error {
	age := now.Sub(newest)
	if where == "" || age >= quietTime {
		return nil
	}
	return &report.Problem{
		Kind: report.Refused, Operation: "write", Path: where,
		Message: fmt.Sprintf("%s has changed at %s, less than %v ago: a query may be running", where, newest.UTC().Format(time.RFC3339), quietTime),
		Hint:    "stop the query and, if you are sure that nothing uses the checkpoint, use --offline",
	}
}

// guardedFS is the file system through which a writing verb changes a store. Before anything is renamed into or out of the
// store's directory it looks whether somebody else has changed that, or the query's logs, since the plan was made. What it
// creates gets mode, owner and group of what is there, so that Spark's user can read and delete it.
type guardedFS struct {
	core.FileSystem
	dir  string
	logs []string
	like *attributes // nil where the file system has no such things for us

	mu    sync.Mutex
	known map[string]fingerprint
}

// fingerprint tells a file from one that has replaced it.
type fingerprint struct {
	size    int64
	modTime time.Time
}

// newGuardedFS remembers what is there.
func newGuardedFS(ctx context.Context, fsys core.FileSystem, dir string, logs []string) (*guardedFS, error) {
	g := &guardedFS{FileSystem: fsys, dir: dir, logs: logs}
	if isLocalFS(fsys) {
		like, err := attributesOf(dir)
		if err != nil {
			return nil, err
		}
		g.like = like
	}
	var err error
	g.known, err = g.look(ctx)
	return g, err
}

func isLocalFS(fsys core.FileSystem) bool { return fsys.URI() == "file://" }

// ours: what the store library keeps beside the versions.
func ours(name string) bool { return strings.HasPrefix(name, "_") }

func (g *guardedFS) look(ctx context.Context) (map[string]fingerprint, error) {
	seen := map[string]fingerprint{}
	for _, dir := range append([]string{g.dir}, g.logs...) {
		for info, err := range g.FileSystem.List(ctx, dir) {
			if errors.Is(err, fs.ErrNotExist) && dir != g.dir {
				break
			}
			if err != nil {
				return nil, err
			}
			if !ours(info.Name) && !info.IsDir() {
				seen[path.Join(dir, info.Name)] = fingerprint{info.Size, info.ModTime}
			}
		}
	}
	return seen, nil
}

// check refuses to go on if anything is not as it was left.
func (g *guardedFS) check(ctx context.Context) error {
	now, err := g.look(ctx)
	if err != nil {
		return err
	}
	var changed []string
	for name, was := range g.known {
		if is, there := now[name]; !there || is.size != was.size || !is.modTime.Equal(was.modTime) {
			changed = append(changed, name)
		}
	}
	for name := range now {
		if _, there := g.known[name]; !there {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return changedMeanwhile(slices.Min(changed))
}

func changedMeanwhile(name string) error {
	return &report.Problem{
		Kind: report.Refused, Operation: "write", Path: name,
		Message: fmt.Sprintf("%s has changed since the work began: a query uses the checkpoint; nothing more is done", name),
		Hint:    "stop the query, and run the same command again",
	}
}

// Rename implements core.FileSystem.
func (g *guardedFS) Rename(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
	touches := func(name string) bool { return path.Dir(name) == g.dir && !ours(path.Base(name)) }
	if !touches(oldname) && !touches(newname) {
		return g.FileSystem.Rename(ctx, oldname, newname, mode)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.check(ctx); err != nil {
		return core.RenameError(oldname, newname, err)
	}
	if err := g.FileSystem.Rename(ctx, oldname, newname, mode); err != nil {
		return err
	}
	delete(g.known, oldname)
	if touches(newname) {
		info, err := g.FileSystem.Stat(ctx, newname)
		if err != nil {
			return err
		}
		g.known[newname] = fingerprint{info.Size, info.ModTime}
	}
	return nil
}

// Create implements core.FileSystem.
func (g *guardedFS) Create(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
	w, err := g.FileSystem.Create(ctx, name, opts)
	if err != nil || g.like == nil {
		return w, err
	}
	if err := g.like.give(name, g.like.file); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// MkdirAll implements core.FileSystem.
func (g *guardedFS) MkdirAll(ctx context.Context, dir string) error {
	if err := g.FileSystem.MkdirAll(ctx, dir); err != nil || g.like == nil {
		return err
	}
	for ; core.Within(g.dir, dir) && dir != g.dir; dir = path.Dir(dir) {
		if err := g.like.give(dir, g.like.dir); err != nil {
			return err
		}
	}
	return nil
}

// attributes are what files and directories of a local store have in common.
type attributes struct {
	uid, gid  int
	file, dir fs.FileMode
}

// defaultFileMode is that of Spark's files where there is none to go by: 0666 less the usual umask.
const defaultFileMode = 0o644

// attributesOf looks at a local store's directory and at a file of a version in it. It refuses a directory of another user,
// unless the superuser asks, who can give files away: Spark could not replace what would be written there.
func attributesOf(dir string) (*attributes, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, core.PathError("stat", dir, errors.ErrUnsupported)
	}
	a := &attributes{uid: int(stat.Uid), gid: int(stat.Gid), file: defaultFileMode, dir: info.Mode().Perm()}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".delta") || strings.HasSuffix(name, ".snapshot") {
			if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
				a.file = info.Mode().Perm()
			}
		}
	}
	if me := os.Geteuid(); me != 0 && me != a.uid {
		return nil, &report.Problem{
			Kind: report.Refused, Operation: "write", Path: dir,
			Message: fmt.Sprintf("%s belongs to user %d, and this command runs as user %d: Spark could not replace what would be written", dir, a.uid, me),
			Hint:    fmt.Sprintf("run it as that user, for instance with sudo -u '#%d'", a.uid),
		}
	}
	return a, nil
}

// give gives a new file or directory its mode, owner and group.
func (a *attributes) give(name string, mode fs.FileMode) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return core.PathError("stat", name, errors.ErrUnsupported)
	}
	if int(stat.Uid) != a.uid || int(stat.Gid) != a.gid {
		if err := os.Lchown(name, a.uid, a.gid); err != nil {
			return err
		}
	}
	if info.Mode().Perm() == mode {
		return nil
	}
	return os.Chmod(name, mode)
}
