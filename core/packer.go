package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

// Packing writes many small states of a worker as segments of one file, in the layout of Flink's file merging:
//
//	taskowned/job_<job id>_tm_hdfsckpt-<worker>/<uuid>   exclusive segments, all of one checkpoint
//	shared/job_<job id>_tm_hdfsckpt-<worker>/<uuid>      shared segments, to which later checkpoints may refer
//
//	file      segment │ segment │ … │ segment     bytes of the states, nothing between them and nothing behind
//	segment   the bytes of one state, with CRC32C sums of its own in the footer of `_metadata`
//
// (Flink has one directory of shared files for each subtask, which costs a file for each subtask and checkpoint; here it is
// one for each worker. Readers go by the paths in the handles.)

// Limits and defaults of a [Packer].
const (
	// DefaultPackMemory is how many bytes of unfinished segments a packer buffers by default.
	DefaultPackMemory = 64 << 20
	// DefaultMaxAmplification is the default of PackOptions.MaxAmplification.
	DefaultMaxAmplification = 2.0
	// maxSegmentBuffer is the largest state in bytes that is buffered as a whole before it goes to its file.
	maxSegmentBuffer = 4 << 20
	// maxTracked is of how many checkpoints the files are remembered, for Aborted.
	maxTracked = 16
)

// PackOptions of a [Packer].
type PackOptions struct {
	// Worker names the worker; required. It is 1 to 100 letters, digits, '-', '_' and '.', the same after a restart of the
	// worker, and different from those of the job's other workers: so the number of directories stays small. Nothing breaks if
	// two workers have the same name.
	Worker string

	// Memory is how many bytes of unfinished states are buffered in all; 0 is DefaultPackMemory. State beyond goes to a file at
	// once, and while it is written, other states go to another file.
	Memory int64

	// MaxAmplification bounds how long a file of shared segments may be in proportion to those of its bytes that are still
	// needed, see Pack.Reuse; 0 is DefaultMaxAmplification, the least is 1.
	MaxAmplification float64
}

// Validate reports all problems of the settings at once, each naming its field; the error is fs.ErrInvalid.
func (o PackOptions) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: "+format, append([]any{fs.ErrInvalid}, args...)...))
	}
	if !isWorkerName(o.Worker) {
		bad("PackOptions.Worker is %.200q: 1 to %d letters, digits, '-', '_' and '.'", o.Worker, maxWorkerName)
	}
	if o.Memory < 0 {
		bad("PackOptions.Memory is %d: it must not be negative", o.Memory)
	}
	if o.MaxAmplification != 0 && !(o.MaxAmplification >= 1) {
		bad("PackOptions.MaxAmplification is %v: at least 1, or 0 for %v", o.MaxAmplification, DefaultMaxAmplification)
	}
	return errors.Join(problems...)
}

// Packer packs the states of one worker. It holds no open file between checkpoints. It is safe for concurrent use, also by
// several checkpoints at the same time.
type Packer struct {
	storage       *Storage
	opts          PackOptions
	taskOwnedDir  string
	sharedDir     string
	buffered      atomic.Int64
	segmentBuffer sync.Pool

	mu      sync.Mutex
	sizes   map[string]int64 // of files of shared segments, by qualified path
	tracked []trackedFiles
}

// trackedFiles are the files of a committed pack.
type trackedFiles struct {
	checkpoint int64
	names      []string
}

// NewPacker checks the settings, all problems at once. It does no I/O. Base directories with entropy are
// errors.ErrUnsupported: what is in one file cannot be scattered.
func (s *Storage) NewPacker(opts PackOptions) (*Packer, error) {
	problems := []error{opts.Validate()}
	if hasEntropy(s.fsys, s.jobDir) {
		problems = append(problems, PathError("pack", s.jobDir, fmt.Errorf("%w: its files are scattered by entropy", errors.ErrUnsupported)))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	opts.Memory = cmp.Or(opts.Memory, DefaultPackMemory)
	opts.MaxAmplification = cmp.Or(opts.MaxAmplification, DefaultMaxAmplification)
	dir := packDirName(s.job, opts.Worker)
	return &Packer{
		storage: s, opts: opts, sizes: map[string]int64{},
		taskOwnedDir: join(join(s.jobDir, TaskOwnedDirName), dir),
		sharedDir:    join(join(s.jobDir, SharedDirName), dir),
	}, nil
}

// Storage returns the storage whose states are packed.
func (p *Packer) Storage() *Storage { return p.storage }

// TaskOwnedDir is the qualified directory of the worker's exclusive segments.
func (p *Packer) TaskOwnedDir() string { return Qualify(p.storage.fsys.URI(), p.taskOwnedDir) }

// SharedDir is the qualified directory of the worker's shared segments.
func (p *Packer) SharedDir() string { return Qualify(p.storage.fsys.URI(), p.sharedDir) }

// Begin starts the pack of a checkpoint at its location, which is one of the packer's storage. ctx governs the pack. It does no
// I/O.
func (p *Packer) Begin(ctx context.Context, id int64, location *Location) *Pack {
	pack := &Pack{packer: p, checkpoint: id, location: location, lock: make(chan struct{}, 1)}
	pack.ctx, pack.cancel = context.WithCancel(ctx)
	pack.exclusive, pack.shared = pack.config(Exclusive), pack.config(Shared)
	return pack
}

// Aborted removes the files of the worker's committed packs of a checkpoint that certainly does not exist: the coordinator has
// reported its abort. Those that a task has acknowledged the coordinator removes too, which does no harm. Packs that are not
// committed are for Pack.Close. The error names what may be left; the next sweep of the job directory finds it.
func (p *Packer) Aborted(ctx context.Context, checkpoint int64) error {
	p.mu.Lock()
	var names []string
	p.tracked = slices.DeleteFunc(p.tracked, func(t trackedFiles) bool {
		if t.checkpoint == checkpoint {
			names = append(names, t.names...)
		}
		return t.checkpoint == checkpoint
	})
	for _, name := range names {
		delete(p.sizes, Qualify(p.storage.fsys.URI(), name))
	}
	p.mu.Unlock()
	_, err := removeFiles(ctx, p.storage.fsys, names)
	return err
}

// track remembers the files of a committed pack.
func (p *Packer) track(checkpoint int64, files []*packFile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := trackedFiles{checkpoint: checkpoint}
	for _, f := range files {
		t.names = append(t.names, f.name)
		if f.scope == Shared {
			p.sizes[Qualify(p.storage.fsys.URI(), f.name)] = f.size
		}
	}
	p.tracked = append(p.tracked, t)
	p.tracked = slices.Clone(p.tracked[max(0, len(p.tracked)-maxTracked):])
}

// reserve takes n bytes of the memory for unfinished segments, if there are as many.
func (p *Packer) reserve(n int64) bool {
	if p.buffered.Add(n) <= p.opts.Memory {
		return true
	}
	p.buffered.Add(-n)
	return false
}

func (p *Packer) release(n int64) { p.buffered.Add(-n) }

func (p *Packer) dir(scope Scope) string {
	if scope == Shared {
		return p.sharedDir
	}
	return p.taskOwnedDir
}
