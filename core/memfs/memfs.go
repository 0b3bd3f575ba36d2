// Package memfs is a [core.FileSystem] in memory that knows what a power cut would leave of it.
//
// It keeps every rule of the contract, and beside the present state it keeps what is durable: an inode has the bytes that
// were synced and those that are only written; a directory has the entries that are on disk and the changes that are not.
// [FS.CrashClone] returns the file system as a machine could find it after a crash now, and [FS.OnMutation] calls back
// after every step that changes anything, so that a test can crash at each of them:
//
//   - Create, Write, Abort, Remove and RemoveAll change only the present state;
//   - Writer.Sync and Close of a file that is not Unsynced first make the bytes durable, then the entry, as fsync of the
//     file and of its directory do; of an Unsynced file they make nothing durable;
//   - MkdirAll and Rename first change the present state, then make the change durable;
//   - whatever makes an entry durable also makes durable the earlier changes to the same directory, as fsync of a
//     directory does. A rename syncs both of its directories.
//
// A Replicated file counts as durable here: what the crash takes is the machine that ran the test, not the replicas.
package memfs

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

const (
	dirMode  = fs.ModeDir | 0o700
	fileMode = fs.FileMode(0o600)

	// replicas is how many replicas a file has where the capability is declared, as HDFS has by default.
	replicas = 3
)

// Options configures a file system. The zero value is complete.
type Options struct {
	// URI is what FS.URI returns; "mem://" by default.
	URI string
	// Base is the directory that all names must lie in; "/" by default. It exists from the start and cannot be removed.
	Base string
	// Capabilities to declare and to keep to. By default Unsynced and Synced files, Sync, and NoReplace of files and
	// directories.
	Capabilities *core.Capabilities
	// Now is the clock for modification times; time.Now by default.
	Now func() time.Time
}

// FS is a file system in memory. Make one with [New].
type FS struct {
	uri  string
	base string
	caps core.Capabilities
	now  func() time.Time

	mu        sync.Mutex
	root      *node
	journal   journal
	mutations int
	hook      func(Mutation)
	open      map[openFile]struct{}
}

var _ core.FileSystem = (*FS)(nil)

// openFile is a reader or writer that has not ended.
type openFile interface{ describe() string }

// New returns an empty file system.
func New(opts Options) *FS {
	if opts.URI == "" {
		opts.URI = "mem://"
	}
	if opts.Base == "" {
		opts.Base = "/"
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	caps := core.Capabilities{
		Durabilities:   []core.Durability{core.Unsynced, core.Synced},
		NoReplaceFiles: true,
		NoReplaceDirs:  true,
		Sync:           true,
	}
	if opts.Capabilities != nil {
		caps = *opts.Capabilities
		caps.Durabilities = slices.Clone(caps.Durabilities)
	}
	f := &FS{
		uri:  opts.URI,
		base: path.Clean("/" + opts.Base),
		caps: caps,
		now:  opts.Now,
		root: newDir(opts.Now()),
		open: map[openFile]struct{}{},
	}
	dir := f.root
	for _, name := range components(f.base) {
		child := newDir(f.now())
		dir.link(name, child)
		dir.durable.set(name, child)
		dir = child
	}
	return f
}

// URI implements core.FileSystem.
func (f *FS) URI() string { return f.uri }

// Capabilities implements core.FileSystem.
func (f *FS) Capabilities() core.Capabilities {
	caps := f.caps
	caps.Durabilities = slices.Clone(caps.Durabilities)
	return caps
}

// OpenFiles describes every Reader that was not closed and every Writer that was neither closed nor aborted, sorted: "read
// name" or "write name".
func (f *FS) OpenFiles() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for o := range f.open {
		lines = append(lines, o.describe())
	}
	slices.Sort(lines)
	return lines
}

// Tree lists everything below the base, sorted: "name size" of a file, "name/" of a directory.
func (f *FS) Tree() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	base, err := f.lookup(f.base)
	if err != nil {
		return nil
	}
	lines := appendTree(nil, strings.TrimSuffix(f.base, "/"), base)
	slices.Sort(lines)
	return lines
}

func appendTree(lines []string, dir string, n *node) []string {
	for _, e := range n.entries {
		name := dir + "/" + e.name
		if e.node.isDir() {
			lines = appendTree(append(lines, name+"/"), name, e.node)
		} else {
			lines = append(lines, name+" "+strconv.Itoa(len(e.node.data)))
		}
	}
	return lines
}

// check is what every method does first: it refuses a bad name and an ended context.
func (f *FS) check(ctx context.Context, op, name string) error {
	if err := core.CheckName(op, f.base, name); err != nil {
		return err
	}
	return core.PathError(op, name, ctx.Err())
}

// lookup finds a name in the present state. The error is a bare sentinel.
func (f *FS) lookup(name string) (*node, error) {
	n := f.root
	for _, component := range components(name) {
		if !n.isDir() {
			return nil, errNotDir
		}
		if n = n.entries.get(component); n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

// lookupDir is lookup for a name that must be a directory.
func (f *FS) lookupDir(name string) (*node, error) {
	n, err := f.lookup(name)
	if err != nil {
		return nil, err
	}
	if !n.isDir() {
		return nil, errNotDir
	}
	return n, nil
}

func components(name string) []string {
	if name == "/" {
		return nil
	}
	return strings.Split(name[1:], "/")
}
