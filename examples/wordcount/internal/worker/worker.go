// Package worker counts words in a process of its own and gives its state when the job asks for it.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/corpus"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/counts"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/messages"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/transport"
	"github.com/hdfsckpt/hdfsckpt/fsurl"
)

// UID ties the state of the counting operator to it across restarts.
const UID = "wordcount-counter"

// Worker is one subtask of the counting operator.
type Worker struct {
	conn     *transport.Conn
	assign   messages.Assign
	storage  *core.Storage
	input    *corpus.Corpus
	counts   *counts.Counts
	position int64
	limit    int64
	// barriers are the snapshots that are due, each at the limit that was in force when its trigger came.
	barriers []barrier
	buffer   []byte
}

type barrier struct {
	at      int64
	trigger coordinator.Trigger
}

// Run connects to the job, works until the job closes the connection, and returns nil then.
func Run(ctx context.Context, address string, hello messages.Hello) error {
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to the job: %w", err)
	}
	conn := transport.New(raw)
	defer func() { _ = conn.Close() }()
	if err := messages.Send(conn, transport.Hello, hello); err != nil {
		return err
	}
	t, payload, err := conn.Receive()
	if err != nil {
		return fmt.Errorf("wait for the assignment: %w", err)
	}
	if t != transport.Assign {
		return fmt.Errorf("the first message is of type %d, not an assignment", t)
	}
	assign, err := messages.Decode[messages.Assign](payload)
	if err != nil {
		return err
	}
	fsys, base, err := fsurl.Open(ctx, assign.Base, fsurl.Options{})
	if err != nil {
		return err
	}
	w := &Worker{conn: conn, assign: assign, position: assign.Position, limit: assign.Position}
	err = w.run(ctx, fsys, base)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, fsys.Close())
}

func (w *Worker) run(ctx context.Context, fsys core.FileSystem, base string) error {
	if err := w.prepare(ctx, fsys, base); err != nil {
		return err
	}
	received := make(chan frame)
	ctx, cancel := context.WithCancel(ctx)
	var receiver sync.WaitGroup
	receiver.Go(func() { w.receive(ctx, received) })
	defer receiver.Wait()
	defer func() { _ = w.conn.Close() }()
	defer cancel()
	for {
		if err := w.takeFrames(received); err != nil {
			return err
		}
		if err := w.snapshotIfDue(ctx); err != nil {
			return err
		}
		if w.position >= w.limit {
			continue // takeFrames blocks then
		}
		if err := w.countChunk(); err != nil {
			return err
		}
	}
}

// prepare opens the storage and the input and restores the state.
func (w *Worker) prepare(ctx context.Context, fsys core.FileSystem, base string) error {
	var err error
	if w.storage, err = core.NewStorage(fsys, base, w.assign.Job, core.Options{}); err != nil {
		return err
	}
	if w.input, err = corpus.Scan(w.assign.Input.Root, w.assign.Input.ChunkBytes); err != nil {
		return err
	}
	if found := w.input.Fingerprint(); found != w.assign.Input.Fingerprint {
		return fmt.Errorf("the input is another one (%s) than the job's (%s)", found, w.assign.Input.Fingerprint)
	}
	groups, err := metadata.KeyGroupsOfSubtask(w.assign.Index, w.assign.Parallelism, counts.MaxParallelism)
	if err != nil {
		return err
	}
	w.counts = counts.New(groups)
	for _, state := range w.assign.State {
		if err := restore(ctx, w.storage.Opener(), state, groups, w.counts); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	return nil
}

type frame struct {
	t       transport.Type
	payload []byte
	err     error
}

// receive hands over what the job sends. The end of the connection is the end of the worker.
func (w *Worker) receive(ctx context.Context, received chan<- frame) {
	for {
		t, payload, err := w.conn.Receive()
		select {
		case received <- frame{t, payload, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// takeFrames handles what has come. It waits for something if there is no chunk to count and no snapshot to take.
func (w *Worker) takeFrames(received <-chan frame) error {
	for {
		wait := w.position >= w.limit && len(w.barriers) == 0
		var f frame
		if wait {
			f = <-received
		} else {
			select {
			case f = <-received:
			default:
				return nil
			}
		}
		if f.err != nil {
			return f.err
		}
		if err := w.handle(f); err != nil {
			return err
		}
	}
}

func (w *Worker) handle(f frame) error {
	switch f.t {
	case transport.Advance:
		advance, err := messages.Decode[messages.Advance](f.payload)
		w.limit = advance.Limit
		return err
	case transport.Trigger:
		var trigger coordinator.Trigger
		if err := trigger.UnmarshalBinary(f.payload); err != nil {
			return err
		}
		w.barriers = append(w.barriers, barrier{at: w.limit, trigger: trigger})
		return nil
	}
	return fmt.Errorf("unexpected message of type %d", f.t)
}

func (w *Worker) countChunk() error {
	var err error
	if w.buffer, err = w.input.Read(w.position, w.buffer[:0]); err != nil {
		return err
	}
	corpus.Words(w.buffer, w.counts.Add)
	w.position++
	return messages.Send(w.conn, transport.Progress, messages.Progress{Position: w.position})
}

// snapshotIfDue answers the triggers whose barrier is reached.
func (w *Worker) snapshotIfDue(ctx context.Context) error {
	for len(w.barriers) > 0 && w.barriers[0].at == w.position {
		trigger := w.barriers[0].trigger
		w.barriers = w.barriers[1:]
		task := coordinator.Task{Operator: coordinator.OperatorIDOf(UID), Subtask: w.assign.Index}
		state, err := w.snapshot(ctx, trigger)
		if err != nil {
			decline, marshalErr := trigger.Decline(task, err.Error()).MarshalBinary()
			if err := errors.Join(marshalErr, w.conn.Send(transport.Decline, decline)); err != nil {
				return err
			}
			continue
		}
		ack, err := trigger.Ack(task, state).MarshalBinary()
		if err != nil {
			return err
		}
		if err := w.conn.Send(transport.Ack, ack); err != nil {
			return err
		}
	}
	return nil
}
