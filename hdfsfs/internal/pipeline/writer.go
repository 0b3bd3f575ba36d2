package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Writer writes the blocks of a file that was just created, in order, and completes it. Write, Sync and Close are for one
// goroutine; Abort and Interrupt may be called from others at any time. After an error all of them fail with that error, and nothing
// goes on in the background; Abort waits for the end of it. All of them return soon after the end of the context.
type Writer struct {
	o    Options
	g    geometry
	file namenode.File

	ctx    context.Context //nolint:containedctx // it governs the whole file, as the contract of a stream says
	cancel context.CancelFunc

	// Of the caller's goroutine.
	cur      *packet
	kept     int   // bytes of cur that were sent already, in a packet before a Sync
	length   int64 // of the block so far, what is in cur included
	seqno    int64
	unsynced bool // bytes were written since the last Sync that was durable
	started  bool
	alone    bool // the streamer runs in the caller's goroutine, and reads the acknowledgements too

	mu      sync.Mutex
	packets []*packet // in order: those that were sent to the present pipeline, then the others
	sent    int
	acked   int64 // length of the block that all nodes have acknowledged
	reached int64 // highest offset in the block that was ever sent
	ended   bool  // no more packets will come
	urgent  bool  // what is not sent yet goes out at once, however little it is
	wakeAt  int   // the caller waits until no more packets than this are in memory; negative if it does not wait
	persist bool  // the NameNode does not know of the present pipeline durably
	flushed bool  // of the present block
	line    *line
	fault   *fault
	last    error // fault since the last acknowledgement
	err     error
	failed  atomic.Bool // err is set
	writing bool        // packets are on their way into the socket
	retired []*packet   // of them, those that are acknowledged

	// Of the streamer, and of the caller after its end.
	previous   *wire.ExtendedBlock // the last block that is finished
	replicas   int                 // the smallest number of nodes that finished a block
	avoided    avoided
	setups     int       // of the present block that failed; guarded by mu
	trouble    time.Time // when the present block could not be set up for the first time; guarded by mu
	pardoned   bool      // nodes that have failed had another chance for it; guarded by mu
	recoveries int       // without an acknowledgement in between; guarded by mu
	returning  time.Time // until when a node that has said that it restarts may be there again; guarded by mu

	extension, placeFor time.Duration

	toStreamer, toCaller chan struct{}
	streamer             sync.WaitGroup
}

// New returns a Writer for a file that was created with the block size and the replication of the options. ctx governs all that
// it does. Wrong options are fs.ErrInvalid.
func New(ctx context.Context, file namenode.File, o Options) (*Writer, error) {
	o, g, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Writer{
		o: o, g: g, file: file, ctx: ctx, cancel: cancel, replicas: o.Replication,
		toStreamer: make(chan struct{}, 1), toCaller: make(chan struct{}, 1), extension: extension, placeFor: placeFor,
		wakeAt: -1,
	}, nil
}

// Write takes the bytes into packets, which are sent in the background, and waits while Options.Window packets are in memory. A
// nil error says nothing of the DataNodes: that does Sync or Close. p is not kept.
func (w *Writer) Write(p []byte) (int, error) {
	taken := 0
	for taken < len(p) {
		if w.cur == nil {
			w.begin(w.length)
		}
		room := min(int64(w.g.capacity()), w.o.BlockSize-w.cur.offset) - int64(w.cur.n)
		n := w.cur.fill(w.g, p[taken:taken+int(min(room, int64(len(p)-taken)))])
		taken += n
		w.length += int64(n)
		w.unsynced = true
		if int64(n) < room {
			break
		}
		if err := w.emit(false); err != nil {
			return 0, err
		}
		if w.length == w.o.BlockSize {
			if err := w.endBlock(); err != nil {
				return 0, err
			}
		}
	}
	if w.failed.Load() {
		return taken, w.failure()
	}
	return taken, nil
}

// Sync waits until all nodes of the pipeline, which are at least Options.MinReplicas, have acknowledged what was written so far:
// readers then see it. With durable, they have also fsynced the present block; earlier blocks are fsynced if Options.SyncBlocks says
// so.
func (w *Writer) Sync(durable bool) error {
	if w.cur != nil && w.cur.n > w.kept {
		if err := w.emitKeeping(durable); err != nil {
			return err
		}
	} else if durable && w.unsynced && w.length > 0 {
		k := w.o.Pool.get(w.g.dataStart() + w.g.capacity())
		k.offset = w.length
		if err := w.enqueue(k, durable); err != nil {
			return err
		}
	}
	if err := w.await(); err != nil {
		return err
	}
	if durable {
		w.unsynced = false
	}
	w.mu.Lock()
	persist, acked := w.persist, w.acked
	w.persist, w.flushed = false, w.length > 0
	w.mu.Unlock()
	if !persist {
		return nil
	}
	last := int64(-1)
	if w.length > 0 {
		last = acked
	}
	if err := w.o.NameNode.Fsync(w.ctx, w.file, last); err != nil {
		return w.fail(err)
	}
	return nil
}

// Close waits until all nodes have finished all blocks, and completes the file. Only if it returns nil is the file there. Another
// Close returns the same error, or fs.ErrClosed after a success.
func (w *Writer) Close() error {
	if !w.started {
		w.alone = true
	}
	if w.cur != nil && w.cur.n > w.kept {
		if err := w.emit(false); err != nil {
			return err
		}
	}
	if w.length > 0 {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	if w.alone {
		w.streamHere()
	}
	if err := w.await(); err != nil {
		return err
	}
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	signal(w.toStreamer)
	w.streamer.Wait()
	if err := w.failure(); err != nil {
		return err
	}
	if err := w.complete(); err != nil {
		return w.fail(err)
	}
	w.release()
	_ = w.fail(errDone)
	return nil
}

// streamHere sends what is left of a file of which nothing was sent before. All of that is in memory, so nobody is to be served
// meanwhile, and a small file needs no goroutine of its own.
func (w *Writer) streamHere() {
	w.mu.Lock()
	run := w.err == nil && len(w.packets) > 0
	if run {
		w.started, w.ended = true, true
		w.streamer.Add(1)
	}
	w.mu.Unlock()
	if run {
		defer w.streamer.Done()
		w.stream()
	}
}

var errDone = fmt.Errorf("the file was closed: %w", fs.ErrClosed)

// Replicas is the smallest number of nodes that have finished a block, after Close; the replication for a file without blocks.
func (w *Writer) Replicas() int { return w.replicas }

// Abort ends what is under way and waits for it. The file stays as it is, under the lease of the client: it is the caller's to
// delete it. After Close it does nothing.
func (w *Writer) Abort() {
	w.Interrupt()
	w.streamer.Wait()
}

// Interrupt makes what hangs fail, without waiting.
func (w *Writer) Interrupt() {
	_ = w.fail(fmt.Errorf("the file was given up: %w", fs.ErrClosed))
}

// release gives the packets back, once nothing runs any more.
func (w *Writer) release() {
	w.cancel()
	for _, k := range w.packets {
		w.o.Pool.put(k)
	}
	if w.packets, w.retired = nil, nil; w.cur != nil {
		w.o.Pool.put(w.cur)
		w.cur = nil
	}
}

func (w *Writer) begin(offset int64) {
	w.cur, w.kept = w.o.Pool.get(w.g.dataStart()+w.g.capacity()), 0
	w.cur.offset = offset
}

// emit sends the present packet on its way.
func (w *Writer) emit(sync bool) error {
	k := w.cur
	w.cur, w.kept = nil, 0
	return w.enqueue(k, sync)
}

// emitKeeping does the same, and begins the next packet with the bytes of the last chunk, if it is not full: its checksum has to
// be that of the whole chunk.
func (w *Writer) emitKeeping(sync bool) error {
	data := w.cur.data(w.g)
	partial := append([]byte(nil), data[len(data)-len(data)%w.g.chunk:]...)
	if err := w.emit(sync); err != nil {
		return err
	}
	if len(partial) > 0 {
		w.begin(w.length - int64(len(partial)))
		w.kept = w.cur.fill(w.g, partial)
	}
	return nil
}

// endBlock sends the packet that ends a block.
func (w *Writer) endBlock() error {
	k := w.o.Pool.get(w.g.dataStart())
	k.offset, k.last = w.length, true
	w.length, w.unsynced = 0, false
	if w.cur != nil { // sent already, all of it
		w.o.Pool.put(w.cur)
		w.cur, w.kept = nil, 0
	}
	return w.enqueue(k, w.o.SyncBlocks)
}

// enqueue seals a packet and waits for room.
func (w *Writer) enqueue(k *packet, sync bool) error {
	k.seqno, k.sync = w.seqno, sync
	w.seqno++
	k.seal(w.g)
	if err := w.shrink(w.o.Window-1, w.o.Window-w.o.batch()); err != nil {
		w.o.Pool.put(k)
		return err
	}
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		w.o.Pool.put(k)
		return w.err
	}
	w.packets = append(w.packets, k)
	w.urgent = w.urgent || k.last
	due := w.due()
	if !w.started && !w.alone {
		w.started = true
		w.streamer.Go(w.stream)
	}
	w.mu.Unlock()
	if due {
		signal(w.toStreamer)
	}
	return nil
}

// await waits until everything is acknowledged, and every block that was ended is finished.
func (w *Writer) await() error {
	w.mu.Lock()
	w.urgent = len(w.packets) > 0
	due := w.due()
	w.mu.Unlock()
	if due {
		signal(w.toStreamer)
	}
	return w.shrink(0, 0)
}

// shrink returns when no more than enough packets are in memory. If there are more it waits until there are no more than target: to
// be woken for each packet would cost more than to send it.
func (w *Writer) shrink(enough, target int) error {
	for {
		w.mu.Lock()
		err, left := w.err, len(w.packets)
		w.wakeAt = target
		if err != nil || left <= enough {
			w.wakeAt = -1
			w.mu.Unlock()
			return err
		}
		w.mu.Unlock()
		if err := w.pause(w.toCaller); err != nil {
			return err
		}
	}
}

// popped wakes the caller if it waits for what is left. It needs the lock.
func (w *Writer) popped() {
	if len(w.packets) <= w.wakeAt {
		w.wakeAt = -1
		signal(w.toCaller)
	}
}

// pause waits for a signal.
func (w *Writer) pause(c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-w.ctx.Done():
		w.awaitEnd()
		return w.fail(w.contextError())
	}
}

// endTime is how long what waits for a server may take to say what it has waited for, once the context has ended.
const endTime = 50 * time.Millisecond

// awaitEnd gives the streamer the time to fail with what it knows.
func (w *Writer) awaitEnd() {
	timer := time.NewTimer(endTime)
	defer timer.Stop()
	for w.failure() == nil {
		select {
		case <-w.toCaller:
		case <-timer.C:
			return
		}
	}
}

// contextError is that of a context that has ended, with what was waited for.
func (w *Writer) contextError() error {
	err := w.ctx.Err()
	if cause := context.Cause(w.ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != nil && len(w.packets) > 0 && w.last == nil {
		return fmt.Errorf("%w; DataNode %s had not acknowledged %d packets", err, w.line.conn.Node, len(w.packets))
	}
	return err
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *Writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// fail makes err the outcome of the file unless it has one, and returns the outcome.
func (w *Writer) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end(err)
}

// end is fail where the lock is held.
func (w *Writer) end(err error) error {
	if w.err == nil {
		if w.last != nil && w.ctx.Err() != nil && !errors.Is(err, w.last) {
			err = fmt.Errorf("%w; the last failure was: %w", err, w.last)
		}
		w.err = err
		w.failed.Store(true)
		w.cancel()
	}
	signal(w.toStreamer)
	signal(w.toCaller)
	return w.err
}

// The first wait for the NameNode to hear of the last block, and the longest.
const (
	completeWait    = time.Millisecond
	completeWaitMax = 400 * time.Millisecond
)

func (w *Writer) complete() error {
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := completeWait; ; wait = min(2*wait, completeWaitMax) {
		done, err := w.o.NameNode.Complete(w.ctx, w.file, w.previous)
		switch {
		case err != nil && wait > completeWait && w.ctx.Err() != nil:
			return w.unheard(err)
		case err != nil || done:
			return err
		}
		if time.Since(begin) >= w.o.CompleteFor {
			return fmt.Errorf("%w: for %v the NameNode has not heard of the replicas of the last block", ErrTooFewReplicas, w.o.CompleteFor)
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-w.ctx.Done():
			return w.unheard(w.contextError())
		}
	}
}

func (w *Writer) unheard(err error) error {
	return fmt.Errorf("%w; the NameNode had not heard of the replicas of the last block", err)
}

// IsClosed reports whether an error says no more than that the file was closed or given up.
func IsClosed(err error) bool { return errors.Is(err, fs.ErrClosed) }
