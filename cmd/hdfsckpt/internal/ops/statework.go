package ops

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/progress"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

// StateWorkOptions of the writing verbs.
type StateWorkOptions struct {
	// Only are the stores to work on; nil fields are all.
	Operator, Partition *int64
	Store               *string
	// Version to compact, Newest for the one that the query would begin with; or to roll back to.
	Version int64
	// Retain is how many versions compact keeps loadable.
	Retain int
	// BelowCommit lets a rollback go below the version that the newest batch committed.
	BelowCommit bool
	// Yes: it is done, and not only planned.
	Yes bool
	// Offline: the user says that no query uses the checkpoint.
	Offline bool
	// Owner is written into the claim of a store's directory, for operators to read.
	Owner string
	Now   func() time.Time
	// Meter is told about the progress; it may be nil.
	Meter *progress.Meter
}

// storeWork is what is to be done in one store.
type storeWork struct {
	store  *sparkckpt.Store
	result report.StateStoreWork
	// do does it; nil if there is nothing to do.
	do func(ctx context.Context, s *statestore.Store) error
	// lost is what cannot be done, beside what can.
	lost []error
	// options beside those that the files ask for.
	options statestore.Options
	// begun: something may have been changed.
	begun bool
}

// planner plans the work on a store, without changing anything.
type planner func(ctx context.Context, s *sparkckpt.Store, w *storeWork) error

// StateCompact writes the snapshot of a version, and cleans up what no retained version needs.
func StateCompact(ctx context.Context, open core.Opener, qualified string, opts StateWorkOptions) (*report.StateWork, []error) {
	return stateWork(ctx, open, qualified, opts, func(_ context.Context, s *sparkckpt.Store, w *storeWork) error {
		return planCompact(s, w, opts)
	}, false)
}

// StateRepair writes damaged snapshots again that the deltas make.
func StateRepair(ctx context.Context, open core.Opener, qualified string, opts StateWorkOptions) (*report.StateWork, []error) {
	return stateWork(ctx, open, qualified, opts, planRepair, false)
}

// StateRollback drops all versions above one. If one store cannot be rolled back, none is.
func StateRollback(ctx context.Context, open core.Opener, qualified string, opts StateWorkOptions) (*report.StateWork, []error) {
	return stateWork(ctx, open, qualified, opts, func(_ context.Context, s *sparkckpt.Store, w *storeWork) error {
		return planRollback(s, w, opts)
	}, true)
}

// stateWork plans the work on all stores and then, with Yes, does it. Together: if one cannot be planned nothing is done, and
// the first failure ends the work.
func stateWork(ctx context.Context, open core.Opener, qualified string, opts StateWorkOptions, plan planner, together bool) (*report.StateWork, []error) {
	result := &report.StateWork{Checkpoint: qualified, DryRun: !opts.Yes, Stores: []report.StateStoreWork{}}
	fsys, _, err := open(ctx, qualified)
	if err != nil {
		return result, []error{err}
	}
	c, stores, err := workStores(ctx, open, qualified, opts)
	if err != nil {
		return result, []error{err}
	}
	if together {
		if err := belowCommit(c, opts); err != nil {
			return result, []error{err}
		}
	}
	works, problems := planAll(ctx, stores, plan)
	switch {
	case !opts.Yes:
	case together && len(problems) > 0:
		unreached(works)
	default:
		if err := quiet(ctx, fsys, c, works, opts); err != nil {
			problems = append(problems, err)
		} else {
			problems = append(problems, doAll(ctx, fsys, c, works, opts, together)...)
		}
	}
	for _, w := range works {
		result.Stores = append(result.Stores, w.result)
	}
	return result, problems
}

// workStores opens the stores to work on.
func workStores(ctx context.Context, open core.Opener, qualified string, opts StateWorkOptions) (*sparkckpt.Checkpoint, []*sparkckpt.Store, error) {
	c, damaged, err := openState(ctx, open, qualified)
	if err != nil {
		return nil, nil, err
	}
	unread, err := c.CheckLogs(ctx)
	if err != nil {
		return nil, nil, err
	}
	operators, unnamed, err := c.Operators(ctx)
	if err != nil {
		return nil, nil, err
	}
	// What the logs cannot tell must not be guessed when files are written.
	if problems := slices.Concat(damaged, unread, unnamed); len(problems) > 0 {
		if problem := logFinding(problems[0]); problem.Severity != sparkckpt.Damage.String() {
			return nil, nil, problems[0]
		}
		p := report.NewProblem(ctx, problems[0])
		p.Hint = "nothing is written as long as it is so: state verify names all that is wrong, and what to do"
		return nil, nil, &p
	}
	wanted := StateVerifyOptions{Operator: opts.Operator, Partition: opts.Partition, Store: opts.Store}
	var stores []*sparkckpt.Store
	for _, o := range operators {
		found, missing, err := c.StoreIDs(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		if len(missing) > 0 {
			return nil, nil, lostStores(o, missing)
		}
		for _, id := range found {
			if !wanted.wants(id) {
				continue
			}
			s, err := c.Store(ctx, id)
			if err != nil {
				return nil, nil, err
			}
			stores = append(stores, s)
		}
	}
	if len(stores) == 0 {
		return nil, nil, noStores(qualified, "write", len(operators))
	}
	return c, stores, nil
}

// lostStores is the refusal to write where a store is lost: what would be deleted in the others may be what the query can go
// back to, together with a copy of it.
func lostStores(o sparkckpt.Operator, missing []statestore.StoreID) error {
	return &report.Problem{
		Kind: report.Damaged, Operation: "write", Path: o.Dir,
		Message: fmt.Sprintf("%s is missing in %s, one of %d: nothing is written", stateID(missing[0], ""), o.Dir, len(missing)),
		Hint:    "state verify names all that are missing; restore them from a copy",
	}
}

func planAll(ctx context.Context, stores []*sparkckpt.Store, plan planner) (works []*storeWork, problems []error) {
	for _, s := range stores {
		w := &storeWork{store: s, result: report.StateStoreWork{StateID: stateID(s.StoreID, ""), Status: report.WorkPlanned, Steps: []report.StateStep{}}}
		works = append(works, w)
		err := ctx.Err()
		if err == nil && s.Provider == sparkckpt.RocksDB {
			err = &report.Problem{
				Kind: report.Unsupported, Path: s.Dir, Message: fmt.Sprintf("%s is a RocksDB store, which is not written here", s.Dir),
				Hint: "Spark itself takes and repairs the snapshots of RocksDB stores",
			}
		}
		if err == nil {
			err = plan(ctx, s, w)
		}
		problems = append(problems, w.lost...)
		switch {
		case err != nil:
			w.do, w.result.Status = nil, report.WorkRefused
			problems = append(problems, err)
		case w.do == nil && len(w.lost) > 0:
			w.result.Status = report.WorkRefused
		case w.do == nil:
			w.result.Status = report.WorkNothing
		}
	}
	return works, problems
}

// quiet refuses a checkpoint that has changed lately.
func quiet(ctx context.Context, fsys core.FileSystem, c *sparkckpt.Checkpoint, works []*storeWork, opts StateWorkOptions) error {
	if opts.Offline {
		return nil
	}
	dirs := logDirs(c)
	for _, w := range works {
		if w.do != nil {
			dirs = append(dirs, w.store.Dir)
		}
	}
	newest, where, err := lastChange(ctx, fsys, dirs)
	if err == nil {
		err = stillBusy(newest, where, opts.Now())
	}
	if err != nil {
		for _, w := range works {
			if w.do != nil {
				w.result.Status = report.WorkRefused
			}
		}
	}
	return err
}

// unreached marks the work that is not begun because other work cannot be done.
func unreached(works []*storeWork) {
	for _, w := range works {
		if w.do != nil {
			w.result.Status = report.WorkPending
		}
	}
}

func logDirs(c *sparkckpt.Checkpoint) []string {
	return []string{path.Join(c.Dir, "offsets"), path.Join(c.Dir, "commits")}
}

func doAll(ctx context.Context, fsys core.FileSystem, c *sparkckpt.Checkpoint, works []*storeWork, opts StateWorkOptions, together bool) (problems []error) {
	opts.Meter.Expect(len(works), 0)
	for _, w := range works {
		switch {
		case w.do == nil:
		case ctx.Err() != nil || together && len(problems) > 0:
			w.result.Status = report.WorkPending
		default:
			w.result.Status = report.WorkDone
			if err := doOne(ctx, fsys, c, w, opts); err != nil {
				w.result.Status = report.WorkRefused
				if w.begun {
					w.result.Status = report.WorkFailed
				}
				problems = append(problems, err)
			}
		}
		opts.Meter.Done(1, 0)
	}
	if ctx.Err() != nil && len(problems) == 0 {
		problems = append(problems, ctx.Err())
	}
	return problems
}

// doOne does the work on a store, if that is still what the plan was made for.
func doOne(ctx context.Context, fsys core.FileSystem, c *sparkckpt.Checkpoint, w *storeWork, opts StateWorkOptions) (err error) {
	guarded, err := newGuardedFS(ctx, fsys, w.store.Dir, logDirs(c))
	if err != nil {
		return err
	}
	if err := guarded.expect(w.store.Entries); err != nil {
		return err
	}
	o := w.options
	o.OwnerName, o.SweepAge, o.CachedVersions, o.Now = opts.Owner, -1, -1, opts.Now
	details, err := w.store.Describe(ctx)
	if err != nil {
		return err
	}
	if o.Compression, err = writeCompression(w.store, details); err != nil {
		return err
	}
	o.RowChecksum = details.RowChecksum
	s, err := statestore.Open(ctx, guarded, w.store.Dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w.begun = true
	return w.do(ctx, s)
}

// expect compares what is there with what the plan was made from.
func (g *guardedFS) expect(entries []core.FileInfo) error {
	planned := map[string]fingerprint{}
	for _, e := range entries {
		if !ours(e.Name) && !e.IsDir() {
			planned[path.Join(g.dir, e.Name)] = fingerprint{e.Size, e.ModTime}
		}
	}
	for name, is := range g.known {
		if was, there := planned[name]; path.Dir(name) == g.dir && (!there || was.size != is.size || !was.modTime.Equal(is.modTime)) {
			return changedMeanwhile(name)
		}
	}
	for name := range planned {
		if _, there := g.known[name]; !there {
			return changedMeanwhile(name)
		}
	}
	return nil
}
