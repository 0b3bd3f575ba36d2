package blockread

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// NameNode is what a Client needs of the NameNode; *namenode.Client is one. Its calls repeat what can be repeated.
type NameNode interface {
	Name() string
	GetBlockLocations(ctx context.Context, path string, offset, length int64) (*wire.LocatedBlocks, error)
	ReportBadBlocks(ctx context.Context, blocks ...*wire.LocatedBlock) error
}

// Options of a Client. The zero value of a field is its documented default, which is that of Hadoop's client where it has one.
type Options struct {
	NameNode NameNode         // required
	Dialer   *datanode.Dialer // required
	// VisibleLength asks a DataNode how much of a block that is being written can be read. nil is that such a block has the length
	// that the NameNode knows.
	VisibleLength func(ctx context.Context, node *wire.DatanodeInfo, block *wire.ExtendedBlock) (int64, error)

	// Prefetch is for how many bytes of a file the places are asked at once; 0 is 1.25 GiB, ten blocks of 128 MiB.
	Prefetch int64
	// Skip is how far a stream is read on rather than opened anew; 0 is 128 KiB.
	Skip int64
	// CachedConns is how many connections are kept; 0 is 16, negative is none. CachedFor is for how long; 0 is 3 s, and DataNodes
	// keep them for 4 s.
	CachedConns int
	CachedFor   time.Duration
	// DeadFor is how long a node that could not be reached is tried last; 0 is 5 minutes.
	DeadFor time.Duration
	// RetryFor is how long a read goes on after all nodes of a block have failed; 0 is 30 s, negative is not at all.
	RetryFor time.Duration
	// HedgeAfter is after what time a ReadAt asks a second node too and takes the first answer; 0 is never.
	HedgeAfter time.Duration
}

func (o Options) withDefaults() (Options, error) {
	var problems []error
	if o.NameNode == nil || o.Dialer == nil {
		problems = append(problems, errors.New("NameNode and Dialer are required"))
	}
	for name, n := range map[string]int64{
		"Prefetch": o.Prefetch, "Skip": o.Skip, "CachedFor": int64(o.CachedFor), "DeadFor": int64(o.DeadFor), "HedgeAfter": int64(o.HedgeAfter),
	} {
		if n < 0 {
			problems = append(problems, fmt.Errorf("option %s is negative", name))
		}
	}
	if len(problems) > 0 {
		return o, fmt.Errorf("%w: %w", fs.ErrInvalid, errors.Join(problems...))
	}
	for p, fallback := range map[*int64]int64{&o.Prefetch: 10 * 128 << 20, &o.Skip: 128 << 10} {
		if *p == 0 {
			*p = fallback
		}
	}
	for p, fallback := range map[*time.Duration]time.Duration{&o.CachedFor: 3 * time.Second, &o.DeadFor: 5 * time.Minute, &o.RetryFor: 30 * time.Second} {
		if *p == 0 {
			*p = fallback
		}
	}
	if o.CachedConns == 0 {
		o.CachedConns = 16
	}
	return o, nil
}

// Client reads files of one cluster. It is safe for concurrent use.
type Client struct {
	o     Options
	cache connCache
	dead  deadNodes

	ctx  context.Context //nolint:containedctx // ends with Close
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup // reports of bad replicas
}

// New checks the options. Wrong ones are fs.ErrInvalid.
func New(o Options) (*Client, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{o: o}
	c.cache.limit, c.cache.keep = o.CachedConns, o.CachedFor
	c.dead.keep = o.DeadFor
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Close breaks all reads that are under way, and returns when nothing of the client runs any more. Reads that come later are
// fs.ErrClosed. It may be called again.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.cache.close()
	c.work.Wait()
}

// background runs f, for which Close waits.
func (c *Client) background(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Go(f)
	}
}
