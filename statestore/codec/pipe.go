package codec

import (
	"io/fs"
	"sync"
)

// pipe turns runs of content into framed blocks and emits these in order. With one encoder everything happens in the
// caller's goroutine; with more there is a goroutine for each, and one that emits. The first failure sticks.
type pipe struct {
	size     int // of a block
	emit     func(*run) error
	encoders []blockEncoder // nil once it has ended

	free    chan *run
	work    chan *run // nil without goroutines
	ordered chan *run // as work, for the one that emits
	running sync.WaitGroup

	mu  sync.Mutex
	err error
}

func newPipe(encoders []blockEncoder, size int, emit func(*run) error) *pipe {
	p := &pipe{size: size, emit: emit, encoders: encoders}
	if len(encoders) == 1 {
		p.free = make(chan *run, 1)
		p.free <- &run{}
		return p
	}
	runs := 2*len(encoders) + 1
	p.free, p.work, p.ordered = make(chan *run, runs), make(chan *run, runs), make(chan *run, runs)
	for range runs {
		p.free <- &run{done: make(chan struct{}, 1)}
	}
	for _, e := range encoders {
		p.running.Go(func() {
			for r := range p.work {
				r.encode(e, size)
				r.done <- struct{}{}
			}
		})
	}
	p.running.Go(func() {
		for r := range p.ordered {
			<-r.done
			p.put(r)
		}
	})
	return p
}

// firstRaw is the memory of a run before it grows: many deltas need no more.
const firstRaw = 4 << 10

// next returns a run to fill, which must then be given to add.
func (p *pipe) next() *run {
	r := <-p.free
	if r.raw == nil {
		r.raw = make([]byte, 0, min(p.size, firstRaw))
	}
	r.raw = r.raw[:0]
	return r
}

// add takes a run, and returns what has failed so far, which need not be in this one.
func (p *pipe) add(r *run) error {
	if p.work == nil {
		r.encode(p.encoders[0], p.size)
		p.put(r)
		return p.failure()
	}
	p.work <- r // all channels have room for all runs
	p.ordered <- r
	return p.failure()
}

// put emits a run that is encoded, unless something has failed, and makes it free.
func (p *pipe) put(r *run) {
	err := p.failure()
	if err == nil {
		if err = r.err; err == nil {
			err = p.emit(r)
		}
		p.fail(err)
	}
	p.free <- r
}

func (p *pipe) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// finish waits until everything is emitted or something has failed, and ends the goroutines.
func (p *pipe) finish() error {
	if p.work != nil {
		close(p.work)
		close(p.ordered)
		p.running.Wait()
		p.work = nil
	}
	for _, e := range p.encoders {
		releaseEncoder(e)
	}
	p.encoders = nil
	return p.failure()
}

// stop ends the goroutines and waits for them; what was not emitted is lost.
func (p *pipe) stop() {
	p.fail(fs.ErrClosed)
	_ = p.finish()
}
