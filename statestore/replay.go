package statestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// errLarger says that a load needs more of the budget than it had reserved.
var errLarger = errors.New("larger than estimated")

// replayer reads the files of a plan into memory.
type replayer struct {
	store   *Store
	ctx     context.Context //nolint:containedctx // lives for one load
	listing Listing
	plan    Replay

	estimate int64 // bytes that the version takes; what the last attempt saw, if that was more
	reserved int64
	added    int64 // by the deltas to the parent
	seen     int64 // bytes of the records so far
	checked  int64 // of these, when goOn was asked
	records  int
}

const (
	// recordOverhead is what an entry takes in memory beside its key and value.
	recordOverhead = 40
	// expansion is how much more memory a file without our footer is taken to need than it has bytes.
	expansion = 4
	// checkEvery is the number of records between looks at the context, at most checkBytes of them.
	checkEvery = 4096
	checkBytes = 1 << 20
	// manyTimes larger than its deltas is a snapshot that is not loaded together with them.
	manyTimes = 20
)

// run makes the version, and has reserved what it takes.
func (r *replayer) run(parent *version) (*version, error) {
	v, err := r.make(parent)
	if err != nil {
		return nil, err
	}
	size := v.tree.MemoryBytes()
	if parent != nil {
		size = r.added
	}
	return v, r.atLeast(size)
}

// make makes the version. With a parent it begins there, and reads only the deltas after it.
func (r *replayer) make(parent *version) (*version, error) {
	r.seen, r.checked = 0, 0
	v := &version{store: r.store, number: r.plan.Version}
	if parent != nil {
		return v, r.onTopOf(v, parent.tree.Edit(), parent.number)
	}
	if r.plan.Base == 0 {
		return v, r.onTopOf(v, (&ordered.Map{}).Edit(), 0)
	}
	snapshot, err := r.open(r.plan.Base, codec.Snapshot)
	if err != nil {
		return nil, r.snapshotFailed(err)
	}
	defer snapshot.close()
	if err := r.reserve(snapshot.estimate() + r.deltaEstimate(r.plan.Base)); err != nil {
		return nil, err
	}
	l := ordered.Loader{Parallelism: r.store.opts.Parallelism, Stop: func() bool { return r.ctx.Err() != nil }}
	if err := r.putAll(snapshot, &l); err != nil {
		return nil, r.snapshotFailed(err)
	}
	if r.fewChanges(snapshot) {
		if v.tree = l.Map(); v.tree == nil {
			return nil, r.ctx.Err()
		}
		if len(r.plan.Deltas) == 0 {
			return v, nil
		}
		return v, r.onTopOf(v, v.tree.Edit(), r.plan.Base)
	}
	for _, delta := range r.plan.Deltas {
		if err := r.delta(delta, l.Put, func(key []byte) { l.Remove(key) }); err != nil {
			return nil, err
		}
	}
	if v.tree = l.Map(); v.tree == nil {
		return nil, r.ctx.Err()
	}
	return v, nil
}

// fewChanges reports whether it is quicker to change a version that is made of the snapshot than to make one of everything:
// a sorted snapshot need not be sorted again then.
func (r *replayer) fewChanges(snapshot *input) bool {
	f := snapshot.records.Footer()
	return len(r.plan.Deltas) == 0 || f != nil && f.Sorted && manyTimes*r.deltaEstimate(r.plan.Base) < expansion*f.StreamBytes
}

// putAll reads a snapshot. Its content is not copied: the loader uses it as it is.
func (r *replayer) putAll(snapshot *input, l *ordered.Loader) error {
	var batch codec.Batch
	for {
		err := snapshot.records.NextBatch(&batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		l.PutShared(batch.Content, batch.Offsets, batch.Skip, batch.Floor)
		r.seen += int64(2*len(batch.Content) + recordOverhead*len(batch.Offsets))
		if r.seen-r.checked > checkBytes {
			if err := r.goOn(); err != nil {
				return err
			}
		}
	}
}

// onTopOf applies the plan's deltas after version from.
func (r *replayer) onTopOf(v *version, e *ordered.Editor, from int64) error {
	if r.reserved == 0 {
		if err := r.reserve(r.deltaEstimate(from)); err != nil {
			return err
		}
	}
	for _, delta := range r.plan.Deltas {
		if delta <= from {
			continue
		}
		if err := r.delta(delta, e.Put, func(key []byte) { e.Remove(key) }); err != nil {
			return err
		}
	}
	r.added = e.AddedBytes()
	v.tree = e.Freeze()
	return nil
}

func (r *replayer) delta(v int64, put func(key, value []byte), remove func(key []byte)) error {
	in, err := r.open(v, codec.Delta)
	if err != nil {
		return err
	}
	defer in.close()
	return r.each(in, func(rec codec.Record) {
		if rec.Removed {
			remove(rec.Key)
		} else {
			put(rec.Key, rec.Value)
		}
	})
}

// each calls use for every record. When it returns nil the file was complete.
func (r *replayer) each(in *input, use func(codec.Record)) error {
	for {
		rec, err := in.records.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		use(rec)
		r.seen += int64(len(rec.Key)+len(rec.Value)) + recordOverhead
		if r.records++; r.records%checkEvery == 0 || r.seen-r.checked > checkBytes {
			if err := r.goOn(); err != nil {
				return err
			}
		}
	}
}

// goOn is asked now and then during a load.
func (r *replayer) goOn() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	r.checked = r.seen
	return r.atLeast(r.seen)
}

// atLeast makes sure that n bytes are reserved, without waiting.
func (r *replayer) atLeast(n int64) error {
	b := r.store.opts.Budget
	if n <= r.reserved || !b.limited() {
		return nil
	}
	if b.tryReserve(n-r.reserved) != nil {
		r.estimate = max(n, 2*r.estimate)
		return errLarger
	}
	r.reserved = n
	return nil
}

// reserve waits for room.
func (r *replayer) reserve(estimate int64) error {
	b := r.store.opts.Budget
	if !b.limited() {
		return nil
	}
	n := max(estimate, r.estimate)
	if err := b.reserve(r.ctx, n); err != nil {
		return err
	}
	r.reserved = n
	return nil
}

// deltaEstimate is what the plan's deltas after version from may take.
func (r *replayer) deltaEstimate(from int64) int64 {
	n := int64(0)
	for _, v := range r.plan.Deltas {
		if i, ok := r.listing.find(v); ok && v > from {
			n += expansion * r.listing.Versions[i].DeltaBytes
		}
	}
	return n
}

// snapshotFailed marks the snapshot as damaged if it is: then other plans are tried. What keeps a good file from being read
// is no damage.
func (r *replayer) snapshotFailed(err error) error {
	if !errors.Is(err, core.ErrCorrupt) {
		return err
	}
	s := r.store
	o := r.listing.snapshotOrigin(r.plan.Base)
	s.mu.Lock()
	s.damaged[o.name] = o
	s.mu.Unlock()
	return &damagedSnapshotError{err}
}

// input is a file of the store that is being read.
type input struct {
	name    string
	file    core.Reader
	records *codec.Reader
}

func (r *replayer) open(v int64, kind codec.Kind) (*input, error) {
	in, err := r.store.openFile(r.ctx, FileName(v, kind), kind, kind == codec.Snapshot)
	if err != nil {
		return nil, err
	}
	if err := r.store.checkRows(in, kind); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// checkRows looks once whether rows have checksums as the options say. Spark's files do not tell, and read with the wrong
// setting they would not be damaged but silently wrong.
func (s *Store) checkRows(in *input, kind codec.Kind) error {
	s.mu.Lock()
	checked := s.rowsChecked
	s.mu.Unlock()
	if checked {
		return nil
	}
	on, known, err := codec.DetectRowChecksum(in.file, in.file.Size(), kind, s.opts.reader(in.name, 0))
	switch {
	case err != nil:
		return err
	case !known:
		return nil // it has no rows
	case on != s.opts.RowChecksum:
		return core.PathError("read", in.name, fmt.Errorf("%w: that its rows have checksums is %v, and Options.RowChecksum is %v", fs.ErrInvalid, on, s.opts.RowChecksum))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rowsChecked = true
	return nil
}

// openFile begins to read a file. With keep the memory of its records is the caller's.
func (s *Store) openFile(ctx context.Context, name string, kind codec.Kind, keep bool) (*input, error) {
	full := path.Join(s.dir, name)
	file, err := s.fsys.Open(ctx, full)
	if err != nil {
		if errors.Is(err, fs.ErrInvalid) {
			err = fmt.Errorf("%w: %w", fs.ErrNotExist, err) // a directory took its place
		}
		return nil, err
	}
	opts := s.opts.reader(full, file.Size())
	opts.Keep = keep
	records, err := codec.NewReader(file, file.Size(), kind, opts)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &input{name: full, file: file, records: records}, nil
}

func (in *input) close() {
	_ = in.records.Close()
	_ = in.file.Close() // it was only read
}

// estimate is what loading a snapshot takes in memory: its content, and the version that is made of it.
func (in *input) estimate() int64 {
	if f := in.records.Footer(); f != nil {
		return 2*f.ContentBytes + recordOverhead*f.Puts
	}
	return expansion * in.file.Size()
}
