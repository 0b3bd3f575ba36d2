package hdfsfs

import (
	"context"

	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// answerer is who a call waits for.
const answerer = "HDFS"

// call is calls.Call for this file system.
func call[T any](ctx context.Context, f *FS, op func() (T, error), undo func(T)) (T, error) {
	return calls.Call(ctx, &f.gate, answerer, op, undo)
}

// do is call for what returns nothing.
func do(ctx context.Context, f *FS, op func() error) error {
	_, err := call(ctx, f, func() (struct{}, error) { return struct{}{}, op() }, nil)
	return err
}
