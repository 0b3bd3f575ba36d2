package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Completed is a complete checkpoint or savepoint.
type Completed struct {
	fsys FileSystem
	dir  string // name of the exclusive directory
	odd  error  // why its metadata is not read: it is no regular file

	// Pointer is the qualified directory, what a user gives to restore from.
	Pointer string
	// Metadata is the handle of the metadata file.
	Metadata FileHandle
}

// FileSystem returns the file system that the checkpoint is on.
func (c *Completed) FileSystem() FileSystem { return c.fsys }

// Dir is the name of the exclusive directory on the file system.
func (c *Completed) Dir() string { return c.dir }

// ID returns the checkpoint id that the directory's name gives; savepoints and moved checkpoints have none there.
func (c *Completed) ID() (int64, bool) { return ParseCheckpointDirName(path.Base(c.dir)) }

// MaxMetadataSize is the largest metadata file in bytes that is read: more than a hundred times that of a large job. A
// larger one is damaged, and its size must not decide how much memory is taken.
const MaxMetadataSize = 1 << 30

// ReadMetadata returns the bytes of the metadata file. One above MaxMetadataSize, and what is no regular file, is ErrCorrupt.
func (c *Completed) ReadMetadata(ctx context.Context) ([]byte, error) {
	_, name, err := SplitQualified(c.Metadata.Path)
	if err != nil {
		return nil, PathError("open", c.Metadata.Path, err)
	}
	if c.odd != nil {
		return nil, PathError("open", name, c.odd)
	}
	return readWhole(ctx, c.fsys, name, MaxMetadataSize)
}

// readWhole reads a file of at most limit bytes; a larger one is ErrCorrupt.
func readWhole(ctx context.Context, fsys FileSystem, name string, limit int64) ([]byte, error) {
	r, err := fsys.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if r.Size() > limit {
		return nil, PathError("read", name, fmt.Errorf("%w: the file has %d bytes; at most %d can be right", ErrCorrupt, r.Size(), limit))
	}
	data := make([]byte, r.Size())
	if _, err := io.ReadFull(r, data); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = PathError("read", name, fmt.Errorf("%w: the file ends before its size of %d bytes", ErrCorrupt, len(data)))
		}
		return nil, err
	}
	return data, nil
}

// ResolvePointer finds the complete checkpoint that a pointer names: its directory, or its metadata file under any name.
// Trailing and repeated slashes and ".." are accepted, as in Flink. The errors are fs.ErrInvalid for a pointer that is
// none, fs.ErrNotExist where there is nothing, no `_metadata`, or only that of a disposal, fs.ErrInvalid and ErrCorrupt for a
// `_metadata` that is no regular file. Nothing is read of the metadata.
func ResolvePointer(ctx context.Context, open Opener, pointer string) (*Completed, error) {
	if pointer == "" {
		return nil, fmt.Errorf("%w: the checkpoint pointer is empty", fs.ErrInvalid)
	}
	fsys, name, err := open(ctx, pointer)
	if err != nil {
		return nil, err
	}
	info, err := fsys.Stat(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("cannot find the checkpoint or savepoint: %w", err)
	}
	dir, metadata := name, join(name, MetadataName)
	if info.IsDir() {
		info, err = fsys.Stat(ctx, metadata)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the directory holds no complete checkpoint; its metadata file can also be named directly: %w", err)
		}
		if err != nil {
			return nil, err
		}
	} else {
		dir, metadata = parentDir(name), name
	}
	if base := path.Base(metadata); base == DisposedName || base == emptiedName {
		return nil, &fs.PathError{Op: "open", Path: metadata, Err: fmt.Errorf("%w: the checkpoint was disposed of", fs.ErrNotExist)}
	}
	if !info.IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: metadata, Err: fmt.Errorf("%w: the metadata cannot be read: %w", fs.ErrInvalid, oddFile(info.Mode))}
	}
	return newCompleted(fsys, dir, metadata, info.Size), nil
}

func newCompleted(fsys FileSystem, dir, metadata string, size int64) *Completed {
	return &Completed{
		fsys: fsys, dir: dir, Pointer: Qualify(fsys.URI(), dir),
		Metadata: FileHandle{Path: Qualify(fsys.URI(), metadata), Size: size},
	}
}

// Discard removes the file of a handle; inline state has none. That of a segment holds other states too and is not removed:
// errors.ErrUnsupported. A file that is gone already is success, also when the file
// system reported the removal as failed. The directory is never touched.
func Discard(ctx context.Context, open Opener, handle StreamHandle) error {
	qualified := ""
	switch h := handle.(type) {
	case nil, *BytesHandle, EmptySegment:
		return nil
	case *FileHandle:
		qualified = h.Path
	case *RelativeFileHandle:
		if err := CheckRelative(h.Name); err != nil {
			return PathError("discard", h.Path(), err)
		}
		qualified = h.Path()
	default:
		return fmt.Errorf("%w: discard of a %T", errors.ErrUnsupported, handle)
	}
	fsys, name, err := open(ctx, qualified)
	if err != nil {
		return err
	}
	return removeFile(ctx, fsys, name)
}

// removeFile removes a file and takes a failure back if the file is gone.
func removeFile(ctx context.Context, fsys FileSystem, name string) error {
	err := fsys.Remove(ctx, name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, statErr := fsys.Stat(ctx, name); errors.Is(statErr, fs.ErrNotExist) {
		return nil
	}
	return err
}

// CheckRelative is the rule for the names of relative handles: they must stay in the checkpoint's directory. The error is
// ErrCorrupt: no writer makes other ones.
func CheckRelative(name string) error {
	if name == "" || name[0] == '/' || strings.ContainsAny(name, "\x00\\") || path.Clean(name) != name || name == "." ||
		name == ".." || strings.HasPrefix(name, "../") {
		return fmt.Errorf("%w: relative handle %q leads out of the checkpoint's directory", ErrCorrupt, name)
	}
	return nil
}
