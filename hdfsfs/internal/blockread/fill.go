package blockread

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// The first and the longest wait for nodes of which none has given the bytes.
const (
	regroupWait    = 100 * time.Millisecond
	regroupWaitMax = 2 * time.Second
)

// trial is what one read has found out about the block that it is at.
type trial struct {
	block     uint64
	failed    map[string]bool // nodes, in this round
	again     string          // the node that was given a second chance
	refetched bool            // because a token was refused
	since     time.Time       // when for the first time no node was left
	wait      time.Duration
	corrupt   map[replica]*wire.DatanodeInfo // in this round, or ever for the report
	rounds    int                            // in which every replica was damaged
	last      error
}

// damage is a block with the nodes whose replicas are bad.
type damage struct {
	block block
	nodes []*wire.DatanodeInfo
}

// fill reads all of p, which is inside the file. onward says that the caller is likely to go on behind it.
func (f *File) fill(p []byte, off int64, onward bool) (n int, err error) {
	var t trial
	var found []damage
	defer func() { f.report(found) }()
	for n < len(p) {
		if err := f.ended(); err != nil {
			return n, err
		}
		b, err := f.blockAt(off + int64(n))
		if err != nil {
			return n, err
		}
		if b.id() != t.block {
			t = trial{block: b.id()}
		}
		k, err := f.some(&t, b, p[n:min(int64(len(p)), b.end-off)], off+int64(n), onward)
		if n += k; k > 0 {
			t.since, t.wait, t.rounds = time.Time{}, 0, 0
		}
		if err != nil {
			found = note(found, b, err)
			if err = f.judge(&t, b, err); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// attemptError is a failure of one node.
type attemptError struct {
	node *wire.DatanodeInfo
	err  error
}

func (e *attemptError) Error() string { return e.err.Error() }
func (e *attemptError) Unwrap() error { return e.err }

// errNoneLeft: all nodes have failed in this round.
var errNoneLeft = errors.New("no node is left")

// some reads p from one block and one node. Fewer bytes come with an error.
func (f *File) some(t *trial, b block, p []byte, off int64, onward bool) (int, error) {
	if o := f.take(b, off); o != nil {
		n, err := o.read(p)
		if err != nil {
			err = &attemptError{nodeOf(b, o.node, f.c.o.Dialer), err}
		}
		f.leave(o)
		if n > 0 || err != nil {
			return n, err
		}
	}
	node := f.choose(t, b, "")
	if node == nil {
		return 0, errNoneLeft
	}
	if !onward && f.c.o.HedgeAfter > 0 && len(b.located.GetLocs()) > 1 {
		return f.hedge(t, b, node, p, off)
	}
	to := b.end
	if !onward {
		to = off + int64(len(p))
	}
	return f.attempt(f.ctx, b, node, p, off, to)
}

// attempt reads p by a new stream that is asked for the bytes up to to.
func (f *File) attempt(ctx context.Context, b block, node *wire.DatanodeInfo, p []byte, off, to int64) (int, error) {
	s, err := f.c.openStream(ctx, b.located, node, off-b.start, to-b.start)
	if err != nil {
		return 0, &attemptError{node, err}
	}
	n, err := s.read(p)
	if err != nil {
		err = &attemptError{node, err}
	}
	f.leave(&openBlock{stream: s, node: s.conn.Node, start: b.start})
	return n, err
}

func nodeOf(b block, address string, dialer *datanode.Dialer) *wire.DatanodeInfo {
	for _, node := range b.located.GetLocs() {
		if dialer.Address(node) == address {
			return node
		}
	}
	return nil
}

// choose returns the next node: one that is not known for anything, else one that is dead, else one whose replica is bad.
func (f *File) choose(t *trial, b block, but string) *wire.DatanodeInfo {
	var best *wire.DatanodeInfo
	worst := 3
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, node := range b.located.GetLocs() {
		address := f.c.o.Dialer.Address(node)
		if t.failed[address] || address == but {
			continue
		}
		rank := 0
		if _, bad := f.bad[replica{b.id(), address}]; bad {
			rank = 2
		} else if f.c.dead.has(address) {
			rank = 1
		}
		if rank < worst {
			best, worst = node, rank
		}
	}
	return best
}

// judge decides what follows from a failure; nil is to go on.
func (f *File) judge(t *trial, b block, err error) error {
	if stopped := f.ended(); stopped != nil {
		return stopped
	}
	if errors.Is(err, errNoneLeft) {
		return f.regroup(t, b)
	}
	t.last = err
	var both *hedgeError
	if errors.As(err, &both) {
		for _, one := range both.errs {
			if err := f.judgeNode(t, b, one); err != nil {
				return err
			}
		}
		return nil
	}
	return f.judgeNode(t, b, err)
}

func (f *File) judgeNode(t *trial, b block, err error) error {
	var (
		at      *attemptError
		refusal *datanode.NodeError
		broken  *streamError
		wrong   *checksumError
	)
	if !errors.As(err, &at) || at.node == nil {
		return nil // the node has left the block: the next one is chosen
	}
	address := f.c.o.Dialer.Address(at.node)
	switch {
	case errors.As(err, &wrong):
		f.spoilt(t, b, at.node, address)
	case errors.As(err, &refusal) && refusal.Status == wire.Status_ERROR_ACCESS_TOKEN && !t.refetched:
		t.refetched = true
		return f.locate(b.start)
	case errors.As(err, &broken) && t.again != address && !isTimeout(err) && !errors.Is(err, wire.ErrMalformed):
		t.again = address // it may have been idle for too long
	default:
		t.fail(address)
		if refusal != nil && refusal.Status == wire.Status_SUCCESS && !errors.Is(err, ErrLayout) || broken != nil {
			f.c.dead.mark(address)
		}
	}
	return nil
}

func (t *trial) fail(address string) {
	if t.failed == nil {
		t.failed = map[string]bool{}
	}
	t.failed[address] = true
}

// spoilt notes a bad replica.
func (f *File) spoilt(t *trial, b block, node *wire.DatanodeInfo, address string) {
	r := replica{b.id(), address}
	t.fail(address)
	if t.corrupt == nil {
		t.corrupt = map[replica]*wire.DatanodeInfo{}
	}
	t.corrupt[r] = node
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bad == nil {
		f.bad = map[replica]struct{}{}
	}
	f.bad[r] = struct{}{}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// regroup gives all nodes another chance, with fresh places, unless there was enough of that.
func (f *File) regroup(t *trial, b block) error {
	if errors.Is(t.last, ErrLayout) {
		return t.last
	}
	nodes := len(b.located.GetLocs())
	damaged := nodes > 0 && len(t.corrupt) >= nodes
	if damaged {
		if t.rounds++; t.rounds > 1 {
			return fmt.Errorf("%w: block %d: %w", ErrChecksum, b.id(), t.last)
		}
	}
	now := time.Now()
	if t.since.IsZero() {
		t.since, t.wait = now, regroupWait
	}
	if f.c.o.RetryFor < 0 || now.Sub(t.since)+t.wait > f.c.o.RetryFor {
		return f.giveUp(t, b, nodes)
	}
	if !damaged {
		timer := time.NewTimer(t.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-f.ctx.Done():
			return f.ended()
		}
	}
	t.wait = min(2*t.wait, regroupWaitMax)
	t.failed, t.again, t.refetched, t.corrupt = nil, "", false, nil
	return f.locate(b.start)
}

func (f *File) giveUp(t *trial, b block, nodes int) error {
	if t.last == nil {
		return fmt.Errorf("%w: block %d is on no DataNode", ErrNoReplica, b.id())
	}
	return fmt.Errorf("%w: block %d, on %d of them: %w", ErrNoReplica, b.id(), nodes, t.last)
}

// note keeps which replicas were found bad, for the report.
func note(found []damage, b block, err error) []damage {
	var both *hedgeError
	if errors.As(err, &both) {
		for _, one := range both.errs {
			found = note(found, b, one)
		}
		return found
	}
	var at *attemptError
	var wrong *checksumError
	if !errors.As(err, &at) || at.node == nil || !errors.As(err, &wrong) {
		return found
	}
	for i := range found {
		if found[i].block.id() == b.id() {
			for _, known := range found[i].nodes {
				if known.GetId().GetDatanodeUuid() == at.node.GetId().GetDatanodeUuid() {
					return found
				}
			}
			found[i].nodes = append(found[i].nodes, at.node)
			return found
		}
	}
	return append(found, damage{block: b, nodes: []*wire.DatanodeInfo{at.node}})
}

// reportLimit is how long the NameNode may take to hear of bad replicas.
const reportLimit = 10 * time.Second

// report tells the NameNode of bad replicas, in the background. If all of several are bad it is more likely that the bytes are
// damaged here, and nothing is reported.
func (f *File) report(found []damage) {
	var blocks []*wire.LocatedBlock
	for _, d := range found {
		all := len(d.block.located.GetLocs())
		if len(d.nodes) >= all && all > 1 {
			continue
		}
		located := &wire.LocatedBlock{
			B: d.block.located.GetB(), Offset: d.block.located.Offset, Locs: d.nodes, Corrupt: new(bool),
			BlockToken: d.block.located.GetBlockToken(),
		}
		blocks = append(blocks, located)
	}
	if len(blocks) == 0 {
		return
	}
	f.c.background(func() {
		ctx, cancel := context.WithTimeout(f.c.ctx, reportLimit)
		defer cancel()
		_ = f.c.o.NameNode.ReportBadBlocks(ctx, blocks...) // whoever reads the block next finds it again
	})
}
