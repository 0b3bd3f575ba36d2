package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

// StateTarget says which store of a Spark checkpoint a verb is about.
type StateTarget struct {
	// Checkpoint is its qualified directory.
	Checkpoint string
	statestore.StoreID
}

// openState opens the checkpoint of a qualified directory. The problems are damage in its logs.
func openState(ctx context.Context, open core.Opener, qualified string) (*sparkckpt.Checkpoint, []error, error) {
	fsys, dir, err := open(ctx, qualified)
	if err != nil {
		return nil, nil, err
	}
	c, err := sparkckpt.Open(ctx, fsys, dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, noCheckpoint(ctx, fsys, dir, err)
		}
		return nil, nil, err
	}
	return c, c.Problems, nil
}

// noCheckpoint tells a directory that is not there from one that is no Spark checkpoint.
func noCheckpoint(ctx context.Context, fsys core.FileSystem, dir string, err error) error {
	if _, statErr := fsys.Stat(ctx, dir); statErr != nil {
		return statErr
	}
	return &report.Problem{
		Kind: report.None, Operation: "open", Path: dir,
		Message: fmt.Sprintf("%s has no directory state, so it is no checkpoint of a stateful Spark query: %v", dir, err),
		Hint:    "give the query's checkpointLocation, the directory that holds offsets, commits and state",
	}
}

// openStore opens a checkpoint and one of its stores.
func openStore(ctx context.Context, open core.Opener, t StateTarget) (*sparkckpt.Store, error) {
	c, _, err := openState(ctx, open, t.Checkpoint)
	if err != nil {
		return nil, err
	}
	s, err := c.Store(ctx, t.StoreID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &report.Problem{
			Kind: report.NotFound, Operation: "open", Path: t.Checkpoint, Message: fmt.Sprintf("there is no %s: %v", stateID(t.StoreID, ""), err),
			Hint: "state ls shows which stores there are",
		}
	}
	return s, err
}

// explainState puts the errors of a load into words that say what to do.
func explainState(err error) error {
	var needed *sparkckpt.SnapshotNeededError
	var ambiguous *sparkckpt.AmbiguousError
	var gap *statestore.GapError
	problem := report.Problem{Operation: "load", Message: fmt.Sprint(err)}
	var at *fs.PathError
	if errors.As(err, &at) {
		problem.Path = at.Path
	}
	switch {
	case errors.As(err, &needed):
		problem.Kind, problem.Path = report.Unsupported, needed.Dir
		problem.Hint = "only versions that changelogs make from version 1 on are read here; for this one use Spark's own reader, spark.read.format(\"statestore\")"
	case errors.As(err, &ambiguous):
		problem.Kind, problem.Hint = report.Usage, "choose one with --checkpoint-id"
	case errors.As(err, &gap):
		problem.Kind, problem.Hint = report.Damaged, "state info shows the versions that can be loaded, state verify why others cannot"
	case errors.Is(err, fs.ErrNotExist):
		problem.Kind, problem.Hint = report.None, "state info shows the versions that there are"
	default:
		return err
	}
	return &problem
}

// begin is the version that the query would begin with: the one that the newest batch committed or, where no log tells, the
// highest. 0 is that of a query that has committed nothing.
func begin(s *sparkckpt.Store) int64 {
	if committed, known := s.Checkpoint().CommittedVersion(); known {
		return committed
	}
	return s.Highest()
}

// StateList lists the stores of a checkpoint.
func StateList(ctx context.Context, open core.Opener, qualified string) (*report.StateListing, []error, error) {
	c, problems, err := openState(ctx, open, qualified)
	if err != nil {
		return nil, nil, err
	}
	operators, more, err := c.Operators(ctx)
	if err != nil {
		return nil, nil, err
	}
	problems = append(problems, more...)
	l := &report.StateListing{Checkpoint: qualified, Pins: pinned(c.Pins), Stores: []report.StateStore{}}
	if c.QueryID != "" {
		l.QueryID = &c.QueryID
	}
	if last := c.LastOffset(); last >= 0 {
		l.LastOffset = &last
	}
	if last := c.LastCommit(); last >= 0 {
		l.LastCommit = &last
	}
	for _, o := range operators {
		stores, err := listOperator(ctx, c, o)
		if err != nil {
			return nil, nil, err
		}
		l.Stores = append(l.Stores, stores...)
	}
	return l, problems, nil
}

func listOperator(ctx context.Context, c *sparkckpt.Checkpoint, o sparkckpt.Operator) ([]report.StateStore, error) {
	found, missing, err := c.StoreIDs(ctx, o)
	if err != nil {
		return nil, err
	}
	stores := make([]report.StateStore, len(found), len(found)+len(missing))
	failures := make([]error, len(found))
	each(ctx, listParallelStores, len(found), func(i int) {
		s, err := c.Store(ctx, found[i])
		if err == nil {
			stores[i] = summary(s, o.Name)
		} else {
			failures[i] = err
		}
	})
	if err := errors.Join(append(failures, ctx.Err())...); err != nil {
		return nil, err
	}
	for _, id := range missing {
		stores = append(stores, report.StateStore{
			StateID: stateID(id, o.Name), Health: report.StateMissing, Provider: c.Pins.Provider().String(),
		})
	}
	slices.SortStableFunc(stores, compareStores)
	return stores, nil
}

// listParallelStores is how many directories of stores are looked at at the same time.
const listParallelStores = 8

func compareStores(a, b report.StateStore) int {
	switch {
	case a.Partition != b.Partition && a.Partition < b.Partition:
		return -1
	case a.Partition != b.Partition:
		return 1
	case a.Store < b.Store:
		return -1
	case a.Store > b.Store:
		return 1
	}
	return 0
}

func stateID(id statestore.StoreID, operatorName string) report.StateID {
	return report.StateID{Operator: id.Operator, Name: operatorName, Partition: id.Partition, Store: id.Name}
}

// summary is the line of a store.
func summary(s *sparkckpt.Store, operatorName string) report.StateStore {
	versions, loadable := s.Versions(), s.Loadable()
	line := report.StateStore{
		StateID: stateID(s.StoreID, operatorName), Health: report.StateIncomplete, Provider: s.Provider.String(),
		Versions: len(versions), Loadable: len(loadable), Snapshots: len(s.Snapshots()), Files: s.Files(), Bytes: s.Bytes(),
	}
	if len(versions) > 0 {
		line.Lowest, line.Highest = &versions[0], &versions[len(versions)-1]
	}
	first := begin(s)
	if first > 0 {
		line.Begin = &first
	}
	switch {
	case first == 0:
		line.Health = report.StateEmpty
	case slices.Contains(loadable, first):
		line.Health = report.StateReady
	}
	return line
}

func pinned(pins sparkckpt.Pins) report.Pinned {
	var p report.Pinned
	if provider := pins.Provider(); provider != sparkckpt.UnknownProvider {
		name := provider.String()
		p.Provider = &name
	} else if class := pins.ProviderClass(); class != "" {
		p.Provider = &class
	}
	if c, known := pins.Compression(); known {
		name := c.String()
		p.Compression = &name
	}
	if on, known := pins.RowChecksum(); known {
		p.RowChecksum = &on
	}
	if n := pins.Partitions(); n > 0 {
		p.Partitions = &n
	}
	return p
}
