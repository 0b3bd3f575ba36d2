package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// avoided are nodes that have failed, on which new blocks are not put for a while.
type avoided struct {
	nodes []*wire.DatanodeInfo
	since []time.Time
}

// avoidFor is dfs.client.write.exclude.nodes.cache.expiry.interval.millis.
const avoidFor = 10 * time.Minute

func (a *avoided) add(node *wire.DatanodeInfo, now time.Time) {
	a.nodes, a.since = append(a.nodes, node), append(a.since, now)
}

// list returns those that are to be avoided now, and forgets the others.
func (a *avoided) list(now time.Time) []*wire.DatanodeInfo {
	old := 0
	for old < len(a.since) && now.Sub(a.since[old]) >= avoidFor {
		old++
	}
	a.nodes, a.since = a.nodes[old:], a.since[old:]
	return slices.Clone(a.nodes)
}

func (a *avoided) clear() { *a = avoided{} }

const (
	// placeFor is how long the cluster may have too few DataNodes for a new block. A NameNode that has just started does not know of
	// all of them, and one that restarts is away.
	placeFor = 15 * time.Second
	// placeWait is the first wait for DataNodes, placeWaitMax the longest.
	placeWait    = 50 * time.Millisecond
	placeWaitMax = 2 * time.Second
)

// standing returns the present pipeline, or one for a new block. It returns nil if there is something to repair first.
func (w *Writer) standing() (*line, error) {
	w.mu.Lock()
	l, broken := w.line, w.fault != nil
	w.mu.Unlock()
	if l != nil || broken {
		return l, nil
	}
	for {
		located, err := w.place()
		if err != nil {
			return nil, err
		}
		m, block := membersOf(located), located.GetB()
		block.NumBytes = uint64p(w.o.BlockSize) // nodes reserve this much
		l, err := w.setUp(m, block, located.GetBlockToken(), wire.OpWriteBlock_PIPELINE_SETUP_CREATE, 0)
		if err == nil {
			w.begun(l)
			return l, nil
		}
		if err := w.abandon(block, m.nodes[0], err); err != nil {
			return nil, err
		}
	}
}

// place asks for a new block on enough nodes. If there are not so many, those that have failed get another chance, and the cluster
// some time.
func (w *Writer) place() (*wire.LocatedBlock, error) {
	for {
		exclude := w.avoided.list(time.Now())
		located, err := w.o.NameNode.AddBlock(w.ctx, w.file, w.previous, namenode.Placement{Exclude: exclude})
		if err == nil {
			err = checkLocated(located)
			if err != nil || len(located.GetLocs()) >= w.o.MinReplicas {
				return located, err
			}
			if err := w.o.NameNode.AbandonBlock(w.ctx, w.file, located.GetB()); err != nil {
				return nil, err
			}
			err = w.tooFew(len(located.GetLocs()), errors.New("the NameNode names no more DataNodes for a block"))
		} else if !noNodes(err) || w.ctx.Err() != nil {
			return nil, err
		}
		again, err := w.anotherChance(err, len(exclude) > 0)
		if !again {
			return nil, err
		}
		if err := w.sleep(w.placePause()); err != nil {
			return nil, err
		}
	}
}

// placePause is how long to wait before DataNodes are asked for again: the longer it has lasted, the longer.
func (w *Writer) placePause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble.IsZero() {
		return placeWait
	}
	return min(max(time.Since(w.trouble)/4, placeWait), placeWaitMax)
}

// anotherChance reports whether a block that has too few nodes is asked for again; else it returns the error to fail with.
func (w *Writer) anotherChance(err error, excluding bool) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inTime() || excluding && !w.pardoned {
		w.pardoned = true
		w.avoided.clear()
		w.setups = 0
		return true, nil
	}
	if w.last != nil {
		err = fmt.Errorf("%w; the last failure was: %w", err, w.last)
	}
	return false, err
}

// mayWait reports whether there is still time for DataNodes to come.
func (w *Writer) mayWait() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inTime()
}

// inTime is mayWait where the lock is held.
func (w *Writer) inTime() bool {
	if w.trouble.IsZero() {
		w.trouble = time.Now()
	}
	return time.Since(w.trouble) < w.placeFor || time.Now().Before(w.returning)
}

// noNodes reports whether an error says that the NameNode knows of no node for a block. It is an exception of no class of its own.
func noNodes(err error) bool {
	var answer *rpc.ServerError
	return errors.As(err, &answer) && strings.HasSuffix(answer.Class, ".IOException") && strings.Contains(answer.Message, "could only be ")
}

// tooFew is the error of a block that has fewer nodes than it must.
func (w *Writer) tooFew(nodes int, cause error) error {
	return fmt.Errorf("%w: %d DataNodes of %d, and %d must have each block: %w", ErrTooFewReplicas, nodes, w.o.Replication, w.o.MinReplicas, cause)
}

// abandon gives up a block of which nothing is acknowledged, and leaves the node out from now on. It fails with cause if that
// has happened too often.
func (w *Writer) abandon(block *wire.ExtendedBlock, bad *wire.DatanodeInfo, cause error) error {
	w.mu.Lock()
	w.setups++
	w.last = cause
	setups := w.setups
	if w.trouble.IsZero() {
		w.trouble = time.Now()
	}
	w.mu.Unlock()
	if w.ctx.Err() != nil {
		return w.contextError()
	}
	if setups > max(w.o.BlockRetries, 0) {
		return fmt.Errorf("a block could not be begun on %d pipelines, the last one: %w", setups, cause)
	}
	if err := w.o.NameNode.AbandonBlock(w.ctx, w.file, block); err != nil {
		return err
	}
	w.avoided.add(bad, time.Now())
	return nil
}
