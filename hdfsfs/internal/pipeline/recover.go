package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

func uint64p(n int64) *uint64 { return proto.Uint64(uint64(n)) }

func checkLocated(b *wire.LocatedBlock) error {
	switch {
	case len(b.GetLocs()) == 0:
		return fmt.Errorf("%w: a block without DataNodes", wire.ErrMalformed)
	case b.GetBlockIndices() != nil:
		return fmt.Errorf("%w: an erasure-coded block", wire.ErrMalformed)
	}
	return nil
}

// repair makes the writer able to send again after a fault. What was sent and not acknowledged is sent again.
func (w *Writer) repair() error {
	w.mu.Lock()
	l, f := w.line, w.fault
	w.fault = nil
	w.mu.Unlock()
	if l == nil {
		return nil // finished after all
	}
	l.close()
	<-l.acks
	w.mu.Lock()
	if l.finished { // the last acknowledgement came after all
		w.mu.Unlock()
		return nil
	}
	w.sent = 0
	fresh := w.acked == 0 && !w.flushed
	closing := len(w.packets) > 0 && w.packets[0].last
	w.recoveries++
	tooOften := w.recoveries > w.o.MaxRecoveries
	w.mu.Unlock()
	switch {
	case w.ctx.Err() != nil:
		return w.contextError()
	case fresh:
		// Nothing of the block is acknowledged, so all of it is still here: a new block has all its replicas again.
		w.mu.Lock()
		w.line, w.reached = nil, 0
		w.expect(f.verdict)
		w.mu.Unlock()
		return w.abandon(l.block, l.nodes[f.bad], f.err)
	case tooOften:
		return fmt.Errorf("the pipeline was recovered %d times without progress: %w", w.o.MaxRecoveries, f.err)
	}
	return w.recoverLine(l, f, closing)
}

// expect gives a node that says that it restarts the time to be there again. It needs the lock.
func (w *Writer) expect(v verdict) {
	if v.restart {
		w.returning = time.Now().Add(w.o.RestartFor)
	}
}

// knockPause is how often it is looked whether a node that restarts is there again.
const knockPause = 250 * time.Millisecond

// bridge is for a node that restarts and without which a block would have fewer nodes than it must: another one takes its place, or
// it is waited for.
func (w *Writer) bridge(m members, restarts int, block *wire.ExtendedBlock, token *wire.Token, failed []*wire.DatanodeInfo, deadline time.Time) (members, error) {
	if rest := m.without(restarts); len(rest.nodes) > 0 && block.GetNumBytes() > 0 {
		other, _, _ := w.addNode(rest, block, append(slices.Clone(failed), m.nodes[restarts]))
		if len(other.nodes) == len(m.nodes) {
			w.avoided.add(m.nodes[restarts], time.Now())
			return other, nil
		}
	}
	return m, w.awaitRestart(m.nodes[restarts], token, deadline)
}

// awaitRestart waits until a node takes connections again, or its time is up. What it then says to a pipeline shows whether it has
// all it needs.
func (w *Writer) awaitRestart(node *wire.DatanodeInfo, token *wire.Token, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(w.ctx, deadline)
	defer cancel()
	for ctx.Err() == nil {
		if err := w.sleep(knockPause); err != nil {
			return err
		}
		if conn, err := w.o.Dialer.Connect(ctx, node, token); err == nil {
			return conn.Close()
		}
	}
	return w.cancelled()
}

// recoverLine sets the pipeline of a block up again on the nodes that are left, and perhaps new ones.
func (w *Writer) recoverLine(old *line, f *fault, closing bool) error {
	m, block := old.members, old.block
	stage := wire.OpWriteBlock_PIPELINE_SETUP_STREAMING_RECOVERY
	if closing {
		stage = wire.OpWriteBlock_PIPELINE_CLOSE_RECOVERY
	}
	var failed []*wire.DatanodeInfo
	var restarts *wire.DatanodeInfo
	for {
		lost := m.nodes[f.bad]
		if f.restart {
			restarts = lost
		}
		w.mu.Lock()
		w.expect(f.verdict)
		acked, flushed, returning := w.acked, w.flushed, w.returning
		w.mu.Unlock()
		switch {
		case len(m.nodes) <= w.o.MinReplicas && sameNode(lost, restarts) && time.Now().Before(returning):
			var err error
			if m, err = w.bridge(m, f.bad, namenode.WithLength(block, acked), old.token, failed, returning); err != nil {
				return err
			}
		case len(m.nodes) == 1:
			return fmt.Errorf("all DataNodes of the pipeline have failed, the last one: %w", f.err)
		default:
			failed = append(failed, lost)
			w.avoided.add(lost, time.Now())
			m = m.without(f.bad)
		}
		policy := replacement{
			Replication: w.o.Replication, Required: w.o.MinReplicas, Flushed: flushed, Closing: closing,
			Never: w.o.NeverReplace, Always: w.o.AlwaysReplace,
		}
		for acked > 0 && policy.wanted(len(m.nodes)) {
			var refused error
			m, failed, refused = w.addNode(m, namenode.WithLength(block, acked), failed)
			if len(m.nodes) >= w.o.MinReplicas || !w.mayWait() {
				break
			}
			if refused != nil {
				return refused
			}
			if err := w.sleep(w.placePause()); err != nil {
				return err
			}
			failed = nil
		}
		if err := w.cancelled(); err != nil {
			return err
		}
		if len(m.nodes) < w.o.MinReplicas {
			return w.tooFew(len(m.nodes), f.err)
		}
		l, next, err := w.again(m, namenode.WithLength(block, acked), stage)
		if err != nil {
			return err
		}
		if l == nil {
			f = next
			w.mu.Lock()
			w.last = f.err
			w.mu.Unlock()
			continue
		}
		return w.resume(l, stage)
	}
}

// again sets up a pipeline with a new generation stamp. A node that fails is a fault; an error is the end.
func (w *Writer) again(m members, block *wire.ExtendedBlock, stage wire.OpWriteBlock_Stage) (*line, *fault, error) {
	updated, err := w.o.NameNode.UpdateBlockForPipeline(w.ctx, block)
	if err != nil {
		return nil, nil, err
	}
	stamp := updated.GetB().GetGenerationStamp()
	l, err := w.setUp(m, block, updated.GetBlockToken(), stage, stamp)
	if err != nil {
		return nil, &fault{verdict{bad: 0}, err}, w.cancelled()
	}
	if v, err := w.response(l); err != nil {
		l.close()
		return nil, &fault{v, err}, w.cancelled()
	}
	after := namenode.WithLength(block, int64(block.GetNumBytes()))
	after.GenerationStamp = &stamp
	if err := w.o.NameNode.UpdatePipeline(w.ctx, block, after, namenode.DatanodeIDs(m.nodes), m.storageIDs); err != nil {
		l.close()
		return nil, nil, err
	}
	l.block, l.confirmed = after, true
	return l, nil, nil
}

// cancelled is why the context has ended, if it has.
func (w *Writer) cancelled() error {
	if w.ctx.Err() != nil {
		return w.contextError()
	}
	return nil
}

// resume goes on with a recovered pipeline. If the block was being closed, its replicas are finished now.
func (w *Writer) resume(l *line, stage wire.OpWriteBlock_Stage) error {
	if stage != wire.OpWriteBlock_PIPELINE_CLOSE_RECOVERY {
		w.begun(l)
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.packets[0]
	w.packets[0] = nil
	w.packets = w.packets[1:]
	w.progressed()
	w.finish(l)
	w.recycle(k)
	signal(w.toCaller)
	return nil
}

// addTries is how many new nodes are tried for one that has failed.
const addTries = 3

// addNode adds a node to a pipeline and has the block copied to it. If that cannot be done the pipeline goes on with those that
// it has, if they suffice. refused is the NameNode's answer if the file is not this writer's any more: then there is nothing to wait for.
func (w *Writer) addNode(m members, block *wire.ExtendedBlock, failed []*wire.DatanodeInfo) (_ members, _ []*wire.DatanodeInfo, refused error) {
	for range addTries {
		answer, err := w.o.NameNode.GetAdditionalDatanode(w.ctx, w.file, block, m.nodes, m.storageIDs, failed, 1)
		var exception *rpc.ServerError
		if errors.As(err, &exception) && !noNodes(err) {
			refused = err
		}
		if err != nil {
			return m, failed, refused
		}
		wider := membersOf(answer)
		added, ok := m.added(wider)
		if !ok {
			return m, failed, nil
		}
		if w.copyTo(m, wider.only(added), block, answer.GetBlockToken()) {
			return wider, failed, nil
		}
		failed = append(failed, wider.nodes[added])
	}
	return m, failed, nil
}

// copyTo has one of the nodes of a pipeline copy the block to a new one. More than one of them may be dead, so a node that cannot be
// asked says nothing of the new one.
func (w *Writer) copyTo(m, to members, block *wire.ExtendedBlock, token *wire.Token) bool {
	for _, from := range m.nodes {
		err := w.transfer(from, to, block, token)
		if err == nil {
			return true
		}
		var refused *datanode.NodeError
		if errors.As(err, &refused) && refused.Status != wire.Status_SUCCESS || w.ctx.Err() != nil {
			return false
		}
	}
	return false
}

// transfer has one node copy the block to another.
func (w *Writer) transfer(from *wire.DatanodeInfo, to members, block *wire.ExtendedBlock, token *wire.Token) error {
	conn, err := w.o.Dialer.Connect(w.ctx, from, token)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(w.ctx, func() { _ = conn.Close() })()
	// The copy may be a whole block: as long as the nodes are alive they make a megabyte a second.
	limit := w.patience(2) + time.Duration(block.GetNumBytes()>>20)*time.Second
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	request := &wire.OpTransferBlock{
		Header: w.header(block, token), Targets: to.nodes, TargetStorageTypes: to.types, TargetStorageIds: to.storageIDs,
	}
	if err := conn.Request(wire.OpCodeTransferBlock, request); err != nil {
		return err
	}
	_, err = conn.Response()
	return err
}

func (w *Writer) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.ctx.Done():
		return w.contextError()
	}
}
