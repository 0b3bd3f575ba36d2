package statestore

import (
	"context"
	"io/fs"
	"sync"
)

// gate lets one in at a time; unlike a mutex it can be waited for within a context.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) leave() { <-g }

// operations counts the calls that are under way, so that close can wait for them.
type operations struct {
	life context.Context //nolint:containedctx // ends when close begins
	end  context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

func newOperations() *operations {
	life, end := context.WithCancel(context.Background())
	return &operations{life: life, end: end}
}

// begin counts a call, until done. After close it is fs.ErrClosed.
func (o *operations) begin() (done func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, fs.ErrClosed
	}
	o.running.Add(1)
	return o.running.Done, nil
}

// beginStoppable is begin for a call that close does not let finish: the context that it returns then ends.
func (o *operations) beginStoppable(ctx context.Context) (_ context.Context, done func(), err error) {
	finished, err := o.begin()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(o.life, cancel)
	return ctx, func() {
		stop()
		cancel()
		finished()
	}, nil
}

// close lets no more calls in and waits for those under way.
func (o *operations) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.end()
	o.running.Wait()
}

func (o *operations) ended() bool { return o.life.Err() != nil }
