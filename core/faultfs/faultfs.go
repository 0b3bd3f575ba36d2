// Package faultfs wraps a [core.FileSystem] so that chosen calls fail, lose their reply, hang, tear or damage bytes.
//
// Every call gets a number, from 0 in the order the calls begin, and an [Injector] decides what happens to it. A sweep
// counts the calls of a run without faults and then repeats it with [Nth] for each number. A call that a stream refuses or
// ignores by itself, because it has ended or failed before, reaches no storage and is not counted; so a deferred Abort after
// a successful Close takes no number.
//
// What an injected failure leads to follows the contract: a Writer that failed stays failed, and Abort removes its file,
// also where Close happened and only its reply was lost.
package faultfs

import (
	"errors"
	"slices"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// errBroken ends a held call of a Writer that Abort broke.
var errBroken = errors.New("broken by Abort")

// FS is a file system with faults. Make one with [Wrap]. It is safe for concurrent use.
type FS struct {
	inner core.FileSystem

	mu     sync.Mutex
	inject Injector
	calls  []Call
	open   map[openFile]struct{}
}

var _ core.FileSystem = (*FS)(nil)

// openFile is a reader or writer that its user has not ended.
type openFile interface{ describe() string }

// Wrap returns inner with faults; without any for a nil injector.
func Wrap(inner core.FileSystem, inject Injector) *FS {
	return &FS{inner: inner, inject: inject, open: map[openFile]struct{}{}}
}

// SetInjector replaces the injector for the calls to come. The numbers go on.
func (f *FS) SetInjector(inject Injector) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject = inject
}

// Calls returns the calls so far.
func (f *FS) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Count is the number of calls so far, which is the index of the next.
func (f *FS) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// OpenFiles describes every Reader on which Close, and every Writer on which neither Close nor Abort was called, sorted:
// "read name" or "write name".
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

// URI implements core.FileSystem.
func (f *FS) URI() string { return f.inner.URI() }

// Capabilities implements core.FileSystem.
func (f *FS) Capabilities() core.Capabilities { return f.inner.Capabilities() }

// begin numbers a call and asks for its fault.
func (f *FS) begin(c Call) (Call, Fault) {
	f.mu.Lock()
	c.Index = len(f.calls)
	f.calls = append(f.calls, c)
	inject := f.inject
	f.mu.Unlock()
	if inject == nil {
		return c, Fault{}
	}
	return c, inject(c)
}

func (f *FS) opened(o openFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[o] = struct{}{}
}

func (f *FS) ended(o openFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, o)
}
