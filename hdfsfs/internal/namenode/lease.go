package namenode

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

const (
	// renewAgain is how soon a renewal that has failed is repeated.
	renewAgain = time.Second
	// pollClosed and pollClosedMax are the first and the longest wait for a file to be closed by lease recovery.
	pollClosed    = 50 * time.Millisecond
	pollClosedMax = time.Second
	// recoverAgain is when lease recovery is asked for anew. Each time it starts over.
	recoverAgain = time.Minute
	// reportAgain is the same where there is nothing to recover but reports to wait for.
	reportAgain = time.Second
)

// RenewLease renews the leases of all files that this client has open.
func (c *Client) RenewLease(ctx context.Context) error {
	return c.call(ctx, "renewLease", &wire.RenewLeaseRequest{ClientName: &c.name}, &wire.RenewLeaseResponse{})
}

// HoldLease renews the leases of this client from now on until release is called, and Close at the latest. It is called before
// Create and released when the file is closed or deleted; for any number of files at a time there is one renewal. Release may be
// called again.
func (c *Client) HoldLease() (release func()) { return c.leases.hold() }

// RecoverLease takes the lease of a file from its writer, and reports whether the file is closed now. Else recovery has started:
// the DataNodes agree on the last block, which keeps what was flushed to them.
func (c *Client) RecoverLease(ctx context.Context, path string) (bool, error) {
	var response wire.RecoverLeaseResponse
	err := c.call(ctx, "recoverLease", &wire.RecoverLeaseRequest{Src: &path, ClientName: &c.name}, &response)
	return response.GetResult(), err
}

// CloseAbandoned recovers the lease of a file and waits until the file is closed, at most until the context ends.
func (c *Client) CloseAbandoned(ctx context.Context, path string) error {
	for {
		closed, err := c.RecoverLease(ctx, path)
		again := recoverAgain
		if answeredWith(err, "AlreadyBeingCreatedException") { // DataNodes have not yet reported the last block, which is finished
			err, again = nil, reportAgain
		}
		if err != nil || closed {
			return err
		}
		closed, err = c.awaitClosed(ctx, path, again)
		if err != nil || closed {
			return err
		}
	}
}

// awaitClosed polls until the file is closed, or until it is time to ask for recovery again.
func (c *Client) awaitClosed(ctx context.Context, path string, again time.Duration) (bool, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	end := time.Now().Add(again)
	for wait := pollClosed; time.Now().Before(end); wait = min(2*wait, pollClosedMax) {
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-timer.C:
		}
		if closed, err := c.IsFileClosed(ctx, path); err != nil || closed {
			return closed, err
		}
	}
	return false, nil
}

// answeredWith reports whether an error is an exception of that class.
func answeredWith(err error, class string) bool {
	var answer *rpc.ServerError
	return errors.As(err, &answer) && short(answer.Class) == class
}

// leases renews while anybody holds.
type leases struct {
	interval time.Duration
	renew    func(context.Context) error

	mu      sync.Mutex
	holders int
	closed  bool
	stop    context.CancelFunc // of the loop that runs; nil if none does
	loops   sync.WaitGroup
}

func newLeases(interval time.Duration, renew func(context.Context) error) *leases {
	return &leases{interval: interval, renew: renew}
}

func (l *leases) hold() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders++; l.holders == 1 && !l.closed {
		ctx, stop := context.WithCancel(context.Background())
		l.stop = stop
		l.loops.Go(func() { l.loop(ctx) })
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.holders--; l.holders == 0 {
			l.end()
		}
	})
}

// end stops the loop that runs, if any; the lock is held.
func (l *leases) end() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

func (l *leases) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.end()
}

// wait returns when no loop runs.
func (l *leases) wait() { l.loops.Wait() }

// loop renews until its context ends. A renewal that fails is repeated soon: whether a lease is lost is seen by the next call of
// its writer.
func (l *leases) loop(ctx context.Context) {
	timer := time.NewTimer(l.interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := l.interval
		if l.renew(ctx) != nil {
			next = min(renewAgain, l.interval)
		}
		timer.Reset(next)
	}
}
