package ops

import (
	"context"
	"fmt"
	"io"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Checkpoint is a complete checkpoint whose metadata was read and is right, with all that it says in memory.
type Checkpoint struct {
	*core.Completed
	Content *metadata.Checkpoint
}

// read finds the checkpoint of a pointer and reads its metadata as a whole; it also returns its bytes.
func read(ctx context.Context, open core.Opener, pointer string) (*Checkpoint, []byte, error) {
	completed, err := core.ResolvePointer(ctx, open, pointer)
	if err != nil {
		return nil, nil, err
	}
	c := &Checkpoint{Completed: completed}
	data, err := completed.ReadMetadata(ctx)
	if err != nil {
		return nil, nil, err
	}
	if c.Content, err = metadata.Parse(data, completed.Pointer); err != nil {
		return nil, nil, core.PathError("read", completed.Metadata.Path, err)
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
	inspector := report.NewInspector(opts)
	s, err := TakeSurvey(ctx, open, pointer, metadata.InventoryOptions{Visit: inspector.Visitor()})
	defer s.Release()
	if err != nil {
		return nil, err
	}
	file := report.MetadataFile{Path: s.Metadata.Path, Bytes: s.Metadata.Size}
	return inspector.Finish(s.Pointer, file, s.Inventory), nil
}

// vanished is the error for a checkpoint that was there at first.
func vanished(pointer string) error {
	return &report.Problem{
		Kind: report.Vanished, Path: pointer,
		Message: fmt.Sprintf("%s was disposed of while the command looked at it", pointer),
		Hint:    "run it again",
	}
}
