package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
)

func TestWhatIsNotKnownToBeSomethingElseIsAFailureOfTheStorage(t *testing.T) {
	for _, tt := range []struct {
		aborted coordinator.Aborted
		want    Cause
	}{
		{coordinator.Aborted{Reason: fmt.Errorf("the coordinator: %w", fs.ErrClosed)}, OfProcess},
		{coordinator.Aborted{Reason: fmt.Errorf("a worker: %w", context.Canceled)}, OfProcess},
		{coordinator.Aborted{Reason: errors.New("begun by an earlier one"), Repeated: true}, OfProcess},
		{coordinator.Aborted{Reason: fmt.Errorf("%w: 7", coordinator.ErrSubsumed)}, OfSubsumed},
		{coordinator.Aborted{Reason: fmt.Errorf("%w: task 1: storage unavailable", coordinator.ErrDeclined)}, OfStorage},
		{coordinator.Aborted{Reason: fmt.Errorf("%w: worker 0: EOF", errWorkerLost)}, OfProcess},
		{coordinator.Aborted{Reason: fmt.Errorf("%w: %w", errWorkerLost, core.ErrUnavailable)}, OfStorage},
		{coordinator.Aborted{Reason: core.ErrUnavailable}, OfStorage},
		{coordinator.Aborted{Reason: context.DeadlineExceeded}, OfStorage},
	} {
		require.Equal(t, tt.want, causeOf(tt.aborted), "%v", tt.aborted.Reason)
	}
}
