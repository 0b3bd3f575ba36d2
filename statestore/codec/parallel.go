package codec

import "sync"

// parallelDecoder reads frames in one goroutine and decodes them in others, several at once; next gives them out in order.
// At most 2 × workers batches are in memory.
type parallelDecoder struct {
	ordered chan *frameBatch // in the order of the file; closed after the batch with an error
	free    chan *frameBatch
	stop    chan struct{}
	running sync.WaitGroup
	current *frameBatch // its first used frames were given out
	used    int
	err     error
}

// batchBytes is how much content of frames is decoded at once, at least: less would not be worth handing it over.
const batchBytes = 256 << 10

// frameBatch is some frames, and what they contain as far as there is no error.
type frameBatch struct {
	frames []*decodedFrame
	n      int // that are used
	err    error
	done   chan struct{}
}

type decodedFrame struct {
	frame
	raw []byte // memory for content
	out []byte
}

func newParallelDecoder(s *source, f framing, workers int) *parallelDecoder {
	depth := 2 * workers
	d := &parallelDecoder{
		ordered: make(chan *frameBatch, depth),
		free:    make(chan *frameBatch, depth),
		stop:    make(chan struct{}),
	}
	for range depth {
		d.free <- &frameBatch{done: make(chan struct{}, 1)}
	}
	work := make(chan *frameBatch, depth)
	d.running.Go(func() { d.scan(s, f, work) })
	for range workers {
		d.running.Go(func() {
			for b := range work {
				b.decode(f, s.keep)
				b.done <- struct{}{}
			}
		})
	}
	return d
}

func (d *parallelDecoder) scan(s *source, f framing, work chan<- *frameBatch) {
	defer close(work)
	defer close(d.ordered)
	for {
		var b *frameBatch
		select {
		case b = <-d.free:
		case <-d.stop:
			return
		}
		b.scan(s, f)
		last := b.err != nil
		work <- b // both channels have room for all batches
		d.ordered <- b
		if last {
			return
		}
	}
}

// scan reads the batch's frames.
func (b *frameBatch) scan(s *source, f framing) {
	b.n = 0
	for content := 0; content < batchBytes; {
		if b.n == len(b.frames) {
			b.frames = append(b.frames, &decodedFrame{})
		}
		next := &b.frames[b.n].frame
		if b.err = f.scan(s, next); b.err != nil {
			return
		}
		b.n++
		content += max(next.rawLen, len(next.payload))
	}
}

// decode decodes the batch's frames up to the first that is damaged.
func (b *frameBatch) decode(f framing, keep bool) {
	for i, d := range b.frames[:b.n] {
		var err error
		if d.out, err = f.decode(d.raw, &d.frame); err != nil {
			b.n, b.err = i, err
			return
		}
		if !keep && !d.stored {
			d.raw = d.out
		}
	}
}

func (d *parallelDecoder) next() ([]byte, error) {
	for d.err == nil {
		if b := d.current; b != nil {
			if d.used < b.n {
				d.used++
				return b.frames[d.used-1].out, nil
			}
			if d.err = b.err; d.err != nil {
				break
			}
			d.free <- b
		}
		d.current, d.used = <-d.ordered, 0
		<-d.current.done
	}
	return nil, d.err
}

func (d *parallelDecoder) off() int64 {
	switch b := d.current; {
	case b == nil || len(b.frames) == 0:
		return 0
	case d.err != nil:
		return b.frames[min(b.n, len(b.frames)-1)].off
	default:
		return b.frames[max(d.used, 1)-1].off
	}
}

func (d *parallelDecoder) close() {
	close(d.stop)
	d.running.Wait()
}
