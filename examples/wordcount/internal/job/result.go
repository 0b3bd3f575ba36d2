package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/worker"
	"github.com/hdfsckpt/hdfsckpt/fsurl"
)

// Result reads the counts and the position of a checkpoint or savepoint of the job, every byte verified.
func Result(ctx context.Context, pointer string) (words map[string]uint64, position int64, err error) {
	opener, err := fsurl.NewOpener(fsurl.Options{})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, opener.Close()) }()
	open := opener.Open
	completed, err := core.ResolvePointer(ctx, open, pointer)
	if err != nil {
		return nil, 0, err
	}
	data, err := completed.ReadMetadata(ctx)
	if err != nil {
		return nil, 0, err
	}
	checkpoint, err := metadata.Parse(data, completed.Pointer)
	if err != nil {
		return nil, 0, err
	}
	for i := range checkpoint.Operators {
		if checkpoint.Operators[i].ID != coordinator.OperatorIDOf(worker.UID) {
			continue
		}
		if words, err = worker.ReadCounts(ctx, open, &checkpoint.Operators[i]); err != nil {
			return nil, 0, err
		}
		position, err = worker.ReadPosition(ctx, open, &checkpoint.Operators[i])
		return words, position, err
	}
	return nil, 0, fmt.Errorf("%s holds no state of the word count", pointer)
}
