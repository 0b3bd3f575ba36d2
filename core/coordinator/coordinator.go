package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Coordinator drives the checkpoints of one job. Make one with [New], then call Start once; until then everything else is
// fs.ErrInvalid.
//
// A coordinator ends when it is closed, when the job was stopped with a savepoint (both fs.ErrClosed), or when another
// coordinator has taken over the job directory ([core.ErrFenced]): from then on every call returns that error, and a
// coordinator that was fenced deletes nothing and makes no callbacks any more. There is no way back: make a new one.
//
// All methods are safe for concurrent use.
type Coordinator struct {
	opts  Options
	index map[metadata.OperatorID]int // positions in opts.Operators
	tasks int

	slots   chan struct{} // holds a token for each checkpoint under way
	trigger turn          // held while a checkpoint is begun and its trigger is sent
	commit  turn          // held while one is committed, and while anything committed is deleted

	over chan struct{} // closed when the coordinator has ended

	mu        sync.Mutex
	phase     phase
	ended     error         // why the coordinator has ended
	stopping  chan struct{} // not nil while a savepoint is to stop the job; closed when that is decided
	owner     *core.Owner
	nextID    int64
	base      int64 // the newest committed or restored checkpoint of the job directory, 0 for none
	pending   map[int64]*pending
	unclear   []*pending          // their outcome is not known
	remains   []*pending          // aborted, but their directory could not be removed
	failed    []failed            // the latest that were aborted
	registry  *registry           // what the complete and the pending ones need
	complete  []complete          // checkpoints of the job directory by ascending id, those included whose deletion has failed
	savepoint complete            // the savepoint that was committed last
	claimed   []core.RestoredMark // checkpoints elsewhere that are to be deleted
	blind     bool                // a damaged checkpoint may need any shared file
	running   bool                // Run was called and has not returned
	lastEnd   time.Time           // of the latest outcome
	calls     int                 // that may do I/O
	idle      chan struct{}
}

type phase uint8

const (
	created phase = iota
	starting
	started
)

// complete is a checkpoint that is complete, and what it needs.
type complete struct {
	id      int64
	objects []core.Object
}

// New checks the options, all problems at once; the error is fs.ErrInvalid. It does no I/O.
func New(opts Options) (*Coordinator, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	c := &Coordinator{
		opts:     opts,
		index:    make(map[metadata.OperatorID]int, len(opts.Operators)),
		slots:    make(chan struct{}, opts.MaxConcurrent),
		trigger:  newTurn(),
		commit:   newTurn(),
		over:     make(chan struct{}),
		pending:  map[int64]*pending{},
		registry: newRegistry(),
	}
	for i, op := range opts.Operators {
		c.index[op.ID] = i
		c.tasks += op.Parallelism
	}
	return c, nil
}

// Operators returns the operators with their defaults filled in.
func (c *Coordinator) Operators() []Operator { return append([]Operator(nil), c.opts.Operators...) }

// Close ends the coordinator: checkpoints under way are aborted, and Run returns. It waits until that is done or ctx has
// ended. What is complete stays. Closing again is harmless. A claim to the job directory needs no release.
func (c *Coordinator) Close(ctx context.Context) error {
	c.end(errClosed)
	c.mu.Lock()
	if c.calls == 0 {
		c.mu.Unlock()
		return nil
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("checkpoints are still being aborted: %w", context.Cause(ctx))
	}
}

var (
	errNotStarted = fmt.Errorf("%w: the coordinator was not started", fs.ErrInvalid)
	errClosed     = fmt.Errorf("the coordinator: %w", fs.ErrClosed)
	errStopped    = fmt.Errorf("the job was stopped with a savepoint: %w", fs.ErrClosed)
)

// enter counts a call that may do I/O, unless the coordinator cannot take it. leave ends it.
func (c *Coordinator) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	c.calls++
	return nil
}

func (c *Coordinator) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls--
	if c.calls == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// usable is called with mu held.
func (c *Coordinator) usable() error {
	switch {
	case c.ended != nil:
		return c.ended
	case c.phase != started:
		return errNotStarted
	}
	return nil
}

// end ends the coordinator and everything under way. Being fenced outweighs other reasons; else the first one stays.
func (c *Coordinator) end(reason error) {
	c.mu.Lock()
	fenced := errors.Is(reason, core.ErrFenced) && !errors.Is(c.ended, core.ErrFenced)
	if c.ended == nil {
		close(c.over)
	}
	if c.ended == nil || fenced {
		c.ended = reason
	}
	for _, p := range c.pending {
		p.cancel(reason)
	}
	c.mu.Unlock()
	if fenced {
		c.observe(Event{Type: EventFenced, Err: reason})
	}
}

// noteFence ends the coordinator if err says that it was fenced, and returns err.
func (c *Coordinator) noteFence(err error) error {
	if errors.Is(err, core.ErrFenced) {
		c.end(err)
	}
	return err
}

// fence returns the error of a coordinator that was fenced, else nil.
func (c *Coordinator) fence() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.ended, core.ErrFenced) {
		return c.ended
	}
	return nil
}

func (c *Coordinator) observe(event Event) {
	if c.opts.Observer != nil {
		c.opts.Observer.Observe(event)
	}
}

// timestamp is the time as it is after a round trip through a message or a file.
func (c *Coordinator) timestamp() time.Time { return c.opts.Now().UTC().Truncate(time.Millisecond) }

// turn is a mutex whose wait ends with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := context.Cause(ctx); err != nil {
		t.give()
		return err
	}
	return nil
}

func (t turn) give() { <-t }

// discardTime is how long discarding may go on after the context of a call has ended.
const discardTime = 10 * time.Second

// detached returns a context for discarding: it lives while parent lives and discardTime longer.
func detached(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.AfterFunc(discardTime, cancel)
		<-ctx.Done()
		timer.Stop()
	})
	return ctx, func() {
		stop()
		cancel()
	}
}
