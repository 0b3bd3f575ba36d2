package ops

import (
	"context"
	"fmt"
	"io"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Checkpoint is a complete checkpoint whose metadata was read and is right.
type Checkpoint struct {
	*core.Completed
	Content *metadata.Checkpoint
	// Objects are the files that it needs.
	Objects []core.Object
}

// Read finds the checkpoint of a pointer and reads its metadata to the end. If the metadata is there and cannot be read, the
// result is still not nil: it has the pointer and the handle of the metadata.
func Read(ctx context.Context, open core.Opener, pointer string) (*Checkpoint, error) {
	c, _, err := read(ctx, open, pointer)
	return c, err
}

// read also returns the bytes of the metadata.
func read(ctx context.Context, open core.Opener, pointer string) (*Checkpoint, []byte, error) {
	completed, err := core.ResolvePointer(ctx, open, pointer)
	if err != nil {
		return nil, nil, err
	}
	c := &Checkpoint{Completed: completed}
	data, err := completed.ReadMetadata(ctx)
	if err != nil {
		return c, nil, err
	}
	if c.Content, err = metadata.Parse(data, completed.Pointer); err == nil {
		c.Objects, err = metadata.Objects(c.Content)
	}
	if err != nil {
		return c, data, core.PathError("read", completed.Metadata.Path, err)
	}
	return c, data, nil
}

// DumpFlink reads the metadata of a checkpoint and returns the function that writes what Flink reads in it, in the form of
// metadata.DumpFlink.
func DumpFlink(ctx context.Context, open core.Opener, pointer string) (func(io.Writer) error, error) {
	c, data, err := read(ctx, open, pointer)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error { return metadata.DumpFlink(w, c.Content, data) }, nil
}

// Inspect reads the metadata of a checkpoint and reports what it says.
func Inspect(ctx context.Context, open core.Opener, pointer string, opts report.InspectOptions) (*report.Inspection, error) {
	c, err := Read(ctx, open, pointer)
	if err != nil {
		return nil, err
	}
	file := report.MetadataFile{Path: c.Metadata.Path, Bytes: c.Metadata.Size}
	return report.Inspect(c.Pointer, file, c.Content, c.Objects, opts), nil
}

// vanished is the error for a checkpoint that was there at first.
func vanished(pointer string) error {
	return &report.Problem{
		Kind: report.Vanished, Path: pointer,
		Message: fmt.Sprintf("%s was disposed of while the command looked at it", pointer),
		Hint:    "run it again",
	}
}
