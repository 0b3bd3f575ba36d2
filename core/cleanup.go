package core

import (
	"context"
	"time"
)

// cleanupTime is how long discarding may go on after the caller's context has ended.
const cleanupTime = 10 * time.Second

// cleanupContext returns a context for discarding: it lives while parent lives and cleanupTime longer, so that what a
// cancelled operation leaves can still be removed.
func cleanupContext(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	ended := make(chan struct{})
	stop := context.AfterFunc(parent, func() {
		timer := time.NewTimer(cleanupTime)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-ended:
		}
	})
	return ctx, func() {
		if stop() {
			cancel()
			return
		}
		select {
		case <-ctx.Done():
		default:
			close(ended)
			cancel()
		}
	}
}
