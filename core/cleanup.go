package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// cleanupTime is how long discarding may go on after the caller's context has ended.
const cleanupTime = 10 * time.Second

// cleanupContext returns a context for settling an operation that failed: it lives while parent lives and cleanupTime
// longer, so that what a cancelled operation leaves can still be removed.
func cleanupContext(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.NewTimer(cleanupTime)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

// discardContext returns a context for discarding, which takes at most cleanupTime whether parent has ended or not.
func discardContext(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(parent), cleanupTime)
}

// inDoubt reports whether a call that failed with err may have had its effect all the same, or may still have it: it was cut
// off, or it failed in a way that is no refusal.
func inDoubt(err error) bool {
	for _, refusal := range []error{
		fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed, errors.ErrUnsupported,
	} {
		if errors.Is(err, refusal) {
			return false
		}
	}
	return err != nil
}

// brokenOff says of a failed call that the user ended the stream while it went on; it is fs.ErrClosed.
func brokenOff(err error) error {
	return fmt.Errorf("%w during the call: %w", fs.ErrClosed, err)
}
