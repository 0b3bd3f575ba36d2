package blockread

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// hedgeError is the failure of two nodes.
type hedgeError struct{ errs []error }

func (e *hedgeError) Error() string   { return errors.Join(e.errs...).Error() }
func (e *hedgeError) Unwrap() []error { return e.errs }

// share is what one node of a hedged read has done.
type share struct {
	into []byte
	n    int
	err  error
}

// mostSpare is how much memory of a hedged read is kept for the next.
const mostSpare = 1 << 20

var spares = sync.Pool{New: func() any { return new([]byte) }}

// hedge reads p from a node, and from a second one too if the first takes long. When one has delivered, the other is broken off and
// waited for: nobody writes to p after the return.
func (f *File) hedge(t *trial, b block, node *wire.DatanodeInfo, p []byte, off int64) (int, error) {
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	shares := make(chan share, 2)
	run := func(node *wire.DatanodeInfo, into []byte) {
		n, err := f.attempt(ctx, b, node, into, off, off+int64(len(into)))
		shares <- share{into, n, err}
	}
	go run(node, p)
	timer := time.NewTimer(f.c.o.HedgeAfter)
	defer timer.Stop()
	select {
	case s := <-shares:
		return s.n, s.err
	case <-timer.C:
	}
	second := f.choose(t, b, f.c.o.Dialer.Address(node))
	if second == nil {
		s := <-shares
		return s.n, s.err
	}
	spare, _ := spares.Get().(*[]byte) // the pool has no others
	if cap(*spare) < len(p) {
		*spare = make([]byte, len(p))
	}
	if len(p) <= mostSpare {
		defer spares.Put(spare)
	}
	go run(second, (*spare)[:len(p)])
	first := <-shares
	if first.err == nil {
		cancel()
	}
	other := <-shares
	return settle(p, first, other)
}

// settle takes the better of two shares.
func settle(p []byte, first, other share) (int, error) {
	best := first
	if first.err != nil && (other.err == nil || other.n > first.n) {
		best = other
	}
	if best.n > 0 && &best.into[0] != &p[0] {
		copy(p, best.into[:best.n])
	}
	if best.err == nil {
		return best.n, nil
	}
	return best.n, &hedgeError{[]error{first.err, other.err}}
}
