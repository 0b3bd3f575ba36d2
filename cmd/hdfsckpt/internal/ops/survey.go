package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Survey is a complete checkpoint whose metadata was read to the end and is right. The metadata is not in memory; it stays open
// until Release.
type Survey struct {
	*core.Completed
	*metadata.Inventory
	reader core.Reader
}

// TakeSurvey finds the checkpoint of a pointer and reads its metadata. If the metadata is there and cannot be read, the result is
// still not nil: it has the pointer and the handle of the metadata, and must be released all the same.
func TakeSurvey(ctx context.Context, open core.Opener, pointer string, opts metadata.InventoryOptions) (*Survey, error) {
	completed, err := core.ResolvePointer(ctx, open, pointer)
	if err != nil {
		return nil, err
	}
	s := &Survey{Completed: completed}
	if s.reader, err = openMetadata(ctx, completed); err != nil {
		return s, err
	}
	s.Inventory, err = metadata.TakeInventory(s.reader, s.reader.Size(), completed.Pointer, opts)
	return s, s.located(err)
}

// openMetadata opens the metadata file of a checkpoint.
func openMetadata(ctx context.Context, c *core.Completed) (core.Reader, error) {
	_, name, err := core.SplitQualified(c.Metadata.Path)
	if err != nil {
		return nil, core.PathError("open", c.Metadata.Path, err)
	}
	r, err := c.FileSystem().Open(ctx, name)
	if err != nil {
		return nil, err
	}
	if r.Size() > core.MaxMetadataSize {
		err := fmt.Errorf("%w: the file has %d bytes; at most %d can be right", core.ErrCorrupt, r.Size(), core.MaxMetadataSize)
		return nil, errors.Join(core.PathError("read", c.Metadata.Path, err), r.Close())
	}
	return r, nil
}

// located gives an error about the content of the metadata the path of the file; those of the storage have it.
func (s *Survey) located(err error) error {
	var at *fs.PathError
	if err == nil || errors.As(err, &at) {
		return err
	}
	return core.PathError("read", s.Metadata.Path, err)
}

// Release closes the metadata. It may be called on nil.
func (s *Survey) Release() {
	if s != nil && s.reader != nil {
		_ = s.reader.Close() // nothing was written
	}
}
