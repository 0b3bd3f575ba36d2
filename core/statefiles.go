package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// StateFiles opens the states of a checkpoint whose segments lie in a few files: each such file is opened once, whatever the number
// of its segments, and stays open until Close. It is safe for concurrent use.
type StateFiles struct {
	ctx  context.Context //nolint:containedctx // it governs the files
	open Opener

	mu     sync.Mutex
	files  map[string]*StateReader // nil after Close
	loaded map[string]*sync.Mutex  // held while a file is being opened
}

// NewStateFiles makes no call. ctx governs everything that is opened.
func NewStateFiles(ctx context.Context, open Opener) *StateFiles {
	return &StateFiles{ctx: ctx, open: open, files: map[string]*StateReader{}, loaded: map[string]*sync.Mutex{}}
}

// Open opens the state of a handle as OpenState does. The reader of a segment is good until Close.
func (f *StateFiles) Open(handle StreamHandle) (*StateReader, error) {
	h, ok := handle.(*SegmentHandle)
	if !ok {
		return OpenState(f.ctx, f.open, handle)
	}
	file, err := f.file(h.Path)
	if err != nil {
		return nil, err
	}
	return file.Segment(Segment{Offset: h.Offset, Size: h.Size, Scope: h.Scope, Checksums: h.Checksums})
}

// file returns the open file with a path. A failure is not remembered: the next call tries again.
func (f *StateFiles) file(path string) (*StateReader, error) {
	f.mu.Lock()
	if f.loaded[path] == nil {
		f.loaded[path] = &sync.Mutex{}
	}
	opening := f.loaded[path]
	f.mu.Unlock()
	opening.Lock()
	defer opening.Unlock()
	f.mu.Lock()
	file, closed := f.files[path], f.files == nil
	f.mu.Unlock()
	switch {
	case closed:
		return nil, PathError("open", path, fs.ErrClosed)
	case file != nil:
		return file, nil
	}
	file, err := openStateFile(f.ctx, f.open, path, -1, nil)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		return nil, errors.Join(PathError("open", path, fs.ErrClosed), file.Close())
	}
	f.files[path] = file
	return file, nil
}

// Close closes the files. It is idempotent.
func (f *StateFiles) Close() error {
	f.mu.Lock()
	files := f.files
	f.files = nil
	f.mu.Unlock()
	var problems []error
	for path, file := range files {
		if err := file.Close(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", path, err))
		}
	}
	return errors.Join(problems...)
}
