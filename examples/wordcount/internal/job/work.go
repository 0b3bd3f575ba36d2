package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/messages"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/transport"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/worker"
)

// TokenVariable is the environment variable in which a worker finds the token of its job, so that no other process can
// join.
const TokenVariable = "WORDCOUNT_TOKEN"

// connectTimeout bounds how long the workers may take to connect.
const connectTimeout = 30 * time.Second

// start is what an attempt begins with.
type start struct {
	position int64
	state    func(index int) []metadata.SubtaskState
}

// startingPoint reads the position of the restored checkpoint and deals its key groups to the workers of this life.
func (j *Job) startingPoint(ctx context.Context, storage *core.Storage, restored *coordinator.Restored) (start, error) {
	operator := coordinator.OperatorIDOf(worker.UID)
	old, found := restored.Operator(operator)
	if !found {
		return start{state: func(int) []metadata.SubtaskState { return nil }}, nil
	}
	position, err := worker.ReadPosition(ctx, storage.Opener(), old)
	if err != nil {
		return start{}, err
	}
	states := make([][]metadata.SubtaskState, j.opts.Workers)
	for i := range states {
		parts, err := restored.KeyedParts(operator, j.opts.Workers, i)
		if err != nil {
			return start{}, err
		}
		for _, part := range parts {
			states[i] = append(states[i], metadata.SubtaskState{ManagedKeyed: part.Handle})
		}
	}
	j.emit(Event{Event: "restored", ID: restored.ID, Pointer: restored.Pointer, Position: position, End: j.end})
	return start{position: position, state: func(i int) []metadata.SubtaskState { return states[i] }}, nil
}

// work runs the workers and the coordinator until the input is counted, and ends with a savepoint. Every goroutine and
// process that it starts has ended when it returns.
func (j *Job) work(ctx context.Context, c *coordinator.Coordinator, crew *crew, from start) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	token := rand.Text()
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	if err := j.startWorkers(ctx, cancel, &running, listener.Addr().String(), token); err != nil {
		cancel(err)
		return "", err
	}
	defer crew.close()
	// Whatever ends the attempt must also end a wait for a connection or a message.
	stop := context.AfterFunc(ctx, func() { _ = listener.Close(); crew.close() })
	defer stop()
	if err := accept(listener, crew, token); err != nil {
		return "", j.lost(ctx, err)
	}
	if err := crew.begin(j.assignment(from), from.position, j.end); err != nil {
		return "", j.lost(ctx, err)
	}
	finished := make(chan struct{})
	var finish sync.Once
	for i := range crew.members {
		running.Go(func() {
			err := j.listen(ctx, c, crew, i, func() { finish.Do(func() { close(finished) }) })
			cancel(fmt.Errorf("%w: worker %d: %w", errWorkerLost, i, err))
		})
	}
	if from.position == j.end {
		finish.Do(func() { close(finished) })
	}
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			cancel(err)
		}
	})
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-finished:
	}
	result, err := c.StopWithSavepoint(ctx, "")
	if err != nil {
		return "", j.lost(ctx, err)
	}
	j.emit(Event{Event: "done", ID: result.ID, Pointer: result.Pointer, Bytes: result.StateSize, Position: j.end, End: j.end})
	cancel(nil)
	return result.Pointer, nil
}

// lost returns the reason for which the attempt was ended, if it was, else err.
func (j *Job) lost(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return errors.Join(cause, err)
	}
	return fmt.Errorf("%w: %w", errWorkerLost, err)
}

func (j *Job) assignment(from start) func(index int) messages.Assign {
	return func(index int) messages.Assign {
		return messages.Assign{
			Index: index, Parallelism: j.opts.Workers, Base: j.opts.Base, Job: JobID(),
			Input:    messages.Input{Root: j.opts.Input, ChunkBytes: j.opts.ChunkBytes, Fingerprint: j.input.Fingerprint()},
			Position: from.position, State: from.state(index),
		}
	}
}

// startWorkers starts the worker processes. The end of one ends the attempt; the end of the attempt ends all.
func (j *Job) startWorkers(
	ctx context.Context, cancel context.CancelCauseFunc, running *sync.WaitGroup, address, token string,
) error {
	for i := range j.opts.Workers {
		args := append(append([]string(nil), j.opts.Worker[1:]...), "--index", strconv.Itoa(i), "--connect", address)
		command := exec.CommandContext(ctx, j.opts.Worker[0], args...) //nolint:gosec // our own command line
		command.Env = append(os.Environ(), TokenVariable+"="+token)
		command.Stderr = os.Stderr
		command.WaitDelay = time.Second
		if err := command.Start(); err != nil {
			return fmt.Errorf("start worker %d: %w", i, err)
		}
		j.emit(Event{Event: "worker", Worker: i, PID: command.Process.Pid})
		running.Go(func() {
			cancel(fmt.Errorf("%w: worker %d ended: %w", errWorkerLost, i, errOr(command.Wait(), errors.New("exit 0"))))
		})
	}
	return nil
}

func errOr(err, fallback error) error {
	if err != nil {
		return err
	}
	return fallback
}

// accept waits for every worker to connect and introduce itself.
func accept(listener net.Listener, crew *crew, token string) error {
	if tcp, ok := listener.(*net.TCPListener); ok {
		if err := tcp.SetDeadline(time.Now().Add(connectTimeout)); err != nil {
			return err
		}
	}
	for connected := 0; connected < len(crew.members); {
		raw, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("wait for the workers: %w", err)
		}
		conn := transport.New(raw)
		index, err := welcome(raw, conn, token, len(crew.members))
		if err != nil {
			_ = conn.Close() // a stranger; the workers are still awaited
			continue
		}
		if crew.members[index].CompareAndSwap(nil, conn) {
			connected++
		}
	}
	return nil
}

func welcome(raw net.Conn, conn *transport.Conn, token string, workers int) (int, error) {
	if err := raw.SetReadDeadline(time.Now().Add(connectTimeout)); err != nil {
		return 0, err
	}
	t, payload, err := conn.Receive()
	if err != nil {
		return 0, err
	}
	hello, err := messages.Decode[messages.Hello](payload)
	if err != nil {
		return 0, err
	}
	if t != transport.Hello || hello.Token != token || hello.Index < 0 || hello.Index >= workers {
		return 0, errors.New("not one of the job's workers")
	}
	return hello.Index, raw.SetReadDeadline(time.Time{})
}

// listen handles what one worker says, until its connection ends.
func (j *Job) listen(ctx context.Context, c *coordinator.Coordinator, crew *crew, index int, finish func()) error {
	for {
		t, payload, err := crew.members[index].Load().Receive()
		if err != nil {
			return err
		}
		if err := j.handle(ctx, c, crew, index, t, payload, finish); err != nil {
			return err
		}
	}
}

func (j *Job) handle(
	ctx context.Context, c *coordinator.Coordinator, crew *crew, index int, t transport.Type, payload []byte, finish func(),
) error {
	switch t {
	case transport.Progress:
		progress, err := messages.Decode[messages.Progress](payload)
		if err != nil {
			return err
		}
		finished, err := crew.progress(index, progress.Position)
		if finished {
			finish()
		}
		return err
	case transport.Ack:
		var ack coordinator.Ack
		if err := ack.UnmarshalBinary(payload); err != nil {
			return err
		}
		return ignoreNotPending(c.Acknowledge(ctx, ack))
	case transport.Decline:
		var decline coordinator.Decline
		if err := decline.UnmarshalBinary(payload); err != nil {
			return err
		}
		return ignoreNotPending(c.Decline(ctx, decline))
	}
	return fmt.Errorf("unexpected message of type %d", t)
}

// ignoreNotPending passes over answers that came too late: the coordinator has taken care of their state.
func ignoreNotPending(err error) error {
	if errors.Is(err, coordinator.ErrNotPending) {
		return nil
	}
	return err
}
