package core

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// packBuffer is the size in bytes of the write buffer of a file of segments.
const packBuffer = 256 << 10

// packFile is a file that segments are appended to. It is used with the lock of its pack, or by the stream that holds it.
type packFile struct {
	fsys     FileSystem
	scope    Scope
	name     string
	writer   Writer
	buffer   *bufio.Writer
	size     int64            // bytes appended, those of abandoned segments included
	segments []*SegmentHandle // to be completed
	held     bool             // a stream appends to it directly
	closed   bool             // durable
	doubt    bool             // creating it failed in a way that may have made it all the same
}

// create makes the file, and its directory if that is missing: nobody else makes it, and a sweep removes it when it is empty.
func (f *packFile) create(ctx context.Context, s *Storage, dir string) error {
	f.fsys = s.fsys
	madeDir := false
	var err error
	for range maxCreateAttempts {
		id, problem := s.opts.NewUUID()
		if problem != nil {
			return PathError("create", dir, problem)
		}
		f.name = join(dir, id.String())
		f.writer, err = s.fsys.Create(ctx, f.name, s.createOptions())
		switch {
		case err == nil:
			f.buffer = bufio.NewWriterSize(f.writer, packBuffer)
			return nil
		case errors.Is(err, fs.ErrExist):
		case errors.Is(err, fs.ErrNotExist) && !madeDir:
			if err := s.fsys.MkdirAll(ctx, dir); err != nil {
				return err
			}
			madeDir = true
		default:
			f.doubt = inDoubt(err)
			return err
		}
	}
	return err
}

// append writes bytes behind those that are there.
func (f *packFile) append(p []byte) error {
	n, err := f.buffer.Write(p)
	f.size += int64(n)
	return err
}

// add enters a segment that ends where the file ends now.
func (f *packFile) add(handle *SegmentHandle, size int64) {
	handle.Offset, handle.Size = f.size-size, size
	f.segments = append(f.segments, handle)
}

// close makes the file durable, or removes one without segments.
func (f *packFile) close() error {
	if len(f.segments) == 0 {
		return f.writer.Abort()
	}
	if err := f.buffer.Flush(); err != nil {
		return err
	}
	if err := f.writer.Close(); err != nil {
		return err
	}
	f.closed = true
	return nil
}

// discard removes the file.
func (f *packFile) discard(ctx context.Context) error {
	if f.writer != nil && !f.closed {
		if err := f.writer.Abort(); err != nil {
			return fmt.Errorf("file of packed states left behind: %w", err)
		}
		return nil
	}
	ctx, cancel := discardContext(ctx)
	defer cancel()
	if err := removeFile(ctx, f.fsys, f.name); err != nil {
		return fmt.Errorf("file of packed states may be left behind: %w", err)
	}
	return nil
}
