package localfs

import (
	"context"

	"github.com/hdfsckpt/hdfsckpt/internal/calls"
)

// answerer is who a call waits for.
const answerer = "the operating system"

// call is calls.Call for this file system.
func call[T any](ctx context.Context, f *FS, op func() (T, error), undo func(T)) (T, error) {
	return calls.Call(ctx, &f.gate, answerer, op, undo)
}
