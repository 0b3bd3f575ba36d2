package core

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/google/uuid"
)

// EntropyFS is a FileSystem that spreads state files over many directories: in the names given to Create the first
// occurrence of a marker is replaced by random characters, and the directory that results is made. `_metadata` must be
// found without listing, so there the marker is removed instead. Everything else passes through.
//
// What a disposal knows by name it finds; a sweep does not look for files that a crash left in the directories of random
// characters, which would take a listing of everything.
//
// (Flink's EntropyInjector, whose marker is the file system's s3.entropy.key.)
type EntropyFS struct {
	FileSystem
	marker string
	length int
}

// WithEntropy wraps fsys. marker must be a non-empty part of one path component, such as "_entropy_", and no part of the
// storage's own names such as "chk-" or an id; length is the number of random characters, 1 to 32, 0 for 4. The error is
// fs.ErrInvalid.
func WithEntropy(fsys FileSystem, marker string, length int) (*EntropyFS, error) {
	if length == 0 {
		length = 4
	}
	if err := CheckComponent(marker); err != nil {
		return nil, fmt.Errorf("entropy marker: %w", err)
	}
	if occursInOwnNames(marker) {
		return nil, fmt.Errorf("%w: entropy marker %q occurs in the storage's own names", fs.ErrInvalid, marker)
	}
	if length < 1 || length > 32 {
		return nil, fmt.Errorf("%w: entropy length is %d: want 1 to 32", fs.ErrInvalid, length)
	}
	return &EntropyFS{FileSystem: fsys, marker: marker, length: length}, nil
}

// occursInOwnNames reports whether the marker could be found in a name that the storage makes itself.
func occursInOwnNames(marker string) bool {
	if strings.Trim(marker, "0123456789abcdef-") == "" {
		return true // ids
	}
	for _, own := range []string{
		MetadataName, DisposedName, SharedDirName, TaskOwnedDirName, checkpointPrefix, savepointPrefix, epochPrefix, ownerName,
		inProgressPrefix, barrierPrefix, disposedSuffix,
	} {
		if strings.Contains(own, marker) {
			return true
		}
	}
	return false
}

// HasEntropy reports whether name holds the marker.
func (e *EntropyFS) HasEntropy(name string) bool { return strings.Contains(name, e.marker) }

// Inject replaces the marker in name, if there is one, by random characters.
func (e *EntropyFS) Inject(name string) string {
	if !e.HasEntropy(name) {
		return name
	}
	random := strings.ReplaceAll(uuid.NewString(), "-", "")[:e.length]
	return strings.Replace(name, e.marker, random, 1)
}

// RemoveMarker removes the marker from name, if there is one, and cleans what remains.
func (e *EntropyFS) RemoveMarker(name string) string {
	if !e.HasEntropy(name) {
		return name
	}
	return path.Clean(strings.Replace(name, e.marker, "", 1))
}

// Create implements FileSystem. The directory of a name that held the marker is made, since nobody can make it beforehand.
// The caller does not learn the random characters: call Inject first where the file must be found again. A name that holds
// the marker more than once is fs.ErrInvalid.
func (e *EntropyFS) Create(ctx context.Context, name string, opts CreateOptions) (Writer, error) {
	placed, err := e.place(name)
	if err == nil && placed != name {
		err = e.MkdirAll(ctx, parentDir(placed))
	}
	if err != nil {
		return nil, err
	}
	return e.FileSystem.Create(ctx, placed, opts)
}

// place returns the name that a new file gets: with the marker replaced.
func (e *EntropyFS) place(name string) (string, error) {
	placed := e.Inject(name)
	if e.HasEntropy(placed) {
		return "", &fs.PathError{Op: "create", Path: name, Err: fmt.Errorf("%w: it holds the entropy marker more than once", fs.ErrInvalid)}
	}
	return placed, nil
}

// Unwrap returns the wrapped file system.
func (e *EntropyFS) Unwrap() FileSystem { return e.FileSystem }

// entropyOf finds the entropy decorator below other decorators that have an Unwrap method.
func entropyOf(fsys FileSystem) *EntropyFS {
	for {
		if e, ok := fsys.(*EntropyFS); ok {
			return e
		}
		wrapper, ok := fsys.(interface{ Unwrap() FileSystem })
		if !ok {
			return nil
		}
		fsys = wrapper.Unwrap()
	}
}

func removeEntropy(fsys FileSystem, name string) string {
	if e := entropyOf(fsys); e != nil {
		return e.RemoveMarker(name)
	}
	return name
}

func hasEntropy(fsys FileSystem, name string) bool {
	e := entropyOf(fsys)
	return e != nil && e.HasEntropy(name)
}

// placeFile returns the name that a new file gets on fsys, and makes the directory that only this name tells.
func placeFile(ctx context.Context, fsys FileSystem, name string) (string, error) {
	e := entropyOf(fsys)
	if e == nil {
		return name, nil
	}
	placed, err := e.place(name)
	if err == nil && placed != name {
		err = fsys.MkdirAll(ctx, parentDir(placed))
	}
	return placed, err
}
