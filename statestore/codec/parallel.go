package codec

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// parallelDecoder reads frames in one goroutine and decodes them in others; next gives them out in order. At most
// 2 × workers frames are in memory.
type parallelDecoder struct {
	ordered chan *decodeJob // in the order of the file; closed after the job with an error
	free    chan *decodeJob
	stop    chan struct{}
	running sync.WaitGroup
	current *decodeJob
	err     error
}

type decodeJob struct {
	frame frame
	raw   []byte // as large as it has become
	out   []byte
	err   error
	done  chan struct{}
}

func newParallelDecoder(s *source, f framing, workers int, keep bool) *parallelDecoder {
	depth := 2 * workers
	d := &parallelDecoder{
		ordered: make(chan *decodeJob, depth),
		free:    make(chan *decodeJob, depth),
		stop:    make(chan struct{}),
	}
	for range depth {
		d.free <- &decodeJob{done: make(chan struct{}, 1)}
	}
	work := make(chan *decodeJob, depth)
	d.running.Go(func() { d.scan(s, f, work) })
	for range workers {
		d.running.Go(func() {
			for job := range work {
				job.out, job.err = f.decode(job.raw, &job.frame)
				if job.err == nil && !keep {
					job.raw = job.out[:cap(job.out)]
				}
				job.done <- struct{}{}
			}
		})
	}
	return d
}

func (d *parallelDecoder) scan(s *source, f framing, work chan<- *decodeJob) {
	defer close(work)
	defer close(d.ordered)
	for {
		var job *decodeJob
		select {
		case job = <-d.free:
		case <-d.stop:
			return
		}
		err := f.scan(s, &job.frame)
		if err != nil {
			job.err = err
			job.done <- struct{}{}
			d.ordered <- job // both channels have room for all jobs
			return
		}
		work <- job
		d.ordered <- job
	}
}

func (d *parallelDecoder) next() ([]byte, error) {
	if d.err != nil {
		return nil, d.err
	}
	if d.current != nil {
		d.free <- d.current
	}
	d.current = <-d.ordered
	<-d.current.done
	if d.err = d.current.err; d.err != nil {
		return nil, d.err
	}
	return d.current.out, nil
}

func (d *parallelDecoder) off() int64 {
	if d.current == nil {
		return 0
	}
	return d.current.frame.off
}

func (d *parallelDecoder) close() {
	close(d.stop)
	d.running.Wait()
}

// blockEncoder appends the framed form of raw to dst. One encoder is for one goroutine.
type blockEncoder interface {
	encode(dst, raw []byte) ([]byte, error)
}

// The encoders' tables are large beside a small delta, so they are used again.
var (
	lz4Encoders, lzfEncoders sync.Pool
	zstdEncoders             [zstd.SpeedBestCompression + 1]sync.Pool
)

func newBlockEncoder(c Compression, blockSize, level int) (blockEncoder, error) {
	switch c {
	case LZ4:
		e, ok := lz4Encoders.Get().(*lz4Encoder)
		if !ok {
			e = &lz4Encoder{}
		}
		e.level = lz4Level(blockSize)
		return e, nil
	case LZF:
		if e, ok := lzfEncoders.Get().(*lzfEncoder); ok {
			return e, nil
		}
		return &lzfEncoder{}, nil
	case Snappy:
		return snappyEncoder{}, nil
	case Zstd:
		speed := zstd.EncoderLevelFromZstd(level)
		if e, ok := zstdEncoders[speed].Get().(*zstdEncoder); ok {
			return e, nil
		}
		return newZstdEncoder(speed)
	}
	return plainEncoder{}, nil
}

func releaseEncoder(e blockEncoder) {
	switch e := e.(type) {
	case *lz4Encoder:
		lz4Encoders.Put(e)
	case *lzfEncoder:
		lzfEncoders.Put(e)
	case *zstdEncoder:
		zstdEncoders[e.level].Put(e)
	}
}

type plainEncoder struct{}

func (plainEncoder) encode(dst, raw []byte) ([]byte, error) { return append(dst, raw...), nil }

// blockPipe turns blocks of content into framed blocks, in order, through emit, which is called in the caller's goroutine.
// With one worker everything happens there.
type blockPipe struct {
	emit     func(framed []byte, rawLen int) error
	encoders []blockEncoder // nil once stopped
	serial   blockEncoder   // nil if there are workers
	framed   []byte
	work     chan *encodeJob
	pending  []*encodeJob
	free     []*encodeJob
	depth    int
	running  sync.WaitGroup
}

type encodeJob struct {
	raw, framed []byte
	err         error
	done        chan struct{}
}

func newBlockPipe(encoders []blockEncoder, emit func([]byte, int) error) *blockPipe {
	p := &blockPipe{emit: emit, encoders: encoders}
	if len(encoders) == 1 {
		p.serial = encoders[0]
		return p
	}
	p.depth = 2 * len(encoders)
	work := make(chan *encodeJob, p.depth)
	p.work = work
	for _, e := range encoders {
		p.running.Go(func() {
			for job := range work {
				job.framed, job.err = e.encode(job.framed[:0], job.raw)
				job.done <- struct{}{}
			}
		})
	}
	return p
}

// add takes a block, and returns the buffer for the next one.
func (p *blockPipe) add(raw []byte) ([]byte, error) {
	if p.serial != nil {
		var err error
		if p.framed, err = p.serial.encode(p.framed[:0], raw); err != nil {
			return raw[:0], err
		}
		return raw[:0], p.emit(p.framed, len(raw))
	}
	if len(p.pending) == p.depth {
		if err := p.drain(1); err != nil {
			return raw[:0], err
		}
	}
	job := &encodeJob{done: make(chan struct{}, 1)}
	if n := len(p.free); n > 0 {
		job, p.free = p.free[n-1], p.free[:n-1]
	}
	next := job.raw[:0]
	job.raw = raw
	p.pending = append(p.pending, job)
	p.work <- job
	return next, nil
}

// drain emits the n oldest blocks that are pending.
func (p *blockPipe) drain(n int) error {
	for range n {
		job := p.pending[0]
		p.pending = p.pending[1:]
		<-job.done
		if job.err != nil {
			return job.err
		}
		if err := p.emit(job.framed, len(job.raw)); err != nil {
			return err
		}
		p.free = append(p.free, job)
	}
	return nil
}

// flush emits all blocks.
func (p *blockPipe) flush() error { return p.drain(len(p.pending)) }

// stop ends the workers and waits for them; blocks that are pending are lost.
func (p *blockPipe) stop() {
	if p.work != nil {
		close(p.work)
		p.work = nil
		p.running.Wait()
	}
	for _, e := range p.encoders {
		releaseEncoder(e)
	}
	p.encoders, p.serial = nil, nil
}
