package ops

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

// writeCompression is what files of a store must be compressed with: what the offset log pins, else what is there.
func writeCompression(s *sparkckpt.Store, details sparkckpt.Description) (codec.Compression, error) {
	pins := s.Checkpoint().Pins
	if c, known := pins.Compression(); known {
		return c, nil
	}
	if pins.Known() {
		return 0, &report.Problem{
			Kind: report.Unsupported, Path: s.Dir,
			Message: fmt.Sprintf("the offset log pins a compression that is not known here, so that Spark could not read what would be written to %s", s.Dir),
		}
	}
	if !details.Known {
		return 0, &report.Problem{Kind: report.Damaged, Path: s.Dir, Message: fmt.Sprintf("no file in %s tells how it is compressed, and there is no offset log", s.Dir)}
	}
	return details.Compression, nil
}

// certain is the newest version that is known to be committed, if there are logs that tell. Without a commit log, as before
// Spark 2.2, that is the version which the newest batch in the offset log reads: whether that batch was done is not known.
func certain(c *sparkckpt.Checkpoint) (version int64, known bool) {
	if version, known = c.CommittedVersion(); known {
		return version, true
	}
	if last := c.LastOffset(); last >= 0 {
		return last, true
	}
	return 0, false
}

// planCompact plans a snapshot of a version and the clean-up behind it.
func planCompact(s *sparkckpt.Store, w *storeWork, opts StateWorkOptions) error {
	committed, known := certain(s.Checkpoint())
	v := opts.Version
	if v == Newest {
		v = committed
		if !known {
			v = s.Highest()
		}
	}
	w.result.Version = v
	switch {
	case v == 0 && len(s.Versions()) == 0:
		return nil
	case v == 0:
		return &report.Problem{Kind: report.None, Path: s.Dir, Message: fmt.Sprintf("nothing is committed in %s", s.Dir), Hint: "version 0 is the empty store and needs no snapshot"}
	case known && v > committed:
		// Spark writes the version again, and would go on to read our snapshot of the former one.
		return &report.Problem{
			Kind: report.Refused, Path: s.Dir,
			Message: fmt.Sprintf("version %d is above %d, the newest that is known to be committed: the query may write it again, and a snapshot of it would be wrong then", v, committed),
			Hint:    fmt.Sprintf("compact version %d", committed),
		}
	}
	if _, err := statestore.PlanReplay(s.Listing, v); err != nil {
		return explainState(core.PathError("compact", s.Dir, err))
	}
	after := s.Listing
	if at := slices.IndexFunc(after.Versions, func(f statestore.VersionFiles) bool { return f.Version == v }); !after.Versions[at].Snapshot {
		after.Versions = slices.Clone(after.Versions)
		after.Versions[at].Snapshot = true
		name := statestore.FileName(v, codec.Snapshot)
		w.result.Steps = append(w.result.Steps, report.StateStep{Do: "write", Path: path.Join(s.Dir, name)})
	}
	w.options.Cleanup = statestore.CleanupPolicy{Retain: opts.Retain}
	plan, err := statestore.PlanCleanup(after, 0, w.options.Cleanup)
	if err != nil {
		return explainState(core.PathError("clean up", s.Dir, err))
	}
	for _, step := range plan.Steps {
		one := report.StateStep{Do: "delete", Path: path.Join(s.Dir, step.Name)}
		if step.Op == statestore.StepVerify {
			one.Do, one.Reason = "verify", fmt.Sprintf("version %d, the oldest that stays, is loaded from it", plan.Oldest)
		}
		w.result.Steps = append(w.result.Steps, one)
	}
	if len(w.result.Steps) > 0 {
		w.do = func(ctx context.Context, store *statestore.Store) error {
			if err := store.Snapshot(ctx, v); err != nil {
				return err
			}
			_, err := store.Cleanup(ctx)
			return err
		}
	}
	return nil
}

// planRepair plans to write damaged snapshots again.
func planRepair(ctx context.Context, s *sparkckpt.Store, w *storeWork) error {
	w.result.Version = begin(s)
	found, err := s.Verify(ctx, nil)
	if err != nil {
		return err
	}
	for _, f := range found.Findings {
		if f.Severity == sparkckpt.Unclear && f.Err != nil {
			return f.Err // what could not be read must not be judged
		}
	}
	rewrite := 0
	for _, f := range found.Findings {
		v, kind, ok := statestore.ParseFileName(path.Base(f.Path))
		if !ok || f.Kind != sparkckpt.FileCorrupt {
			continue
		}
		if kind == codec.Snapshot && slices.Contains(found.Loadable, v) {
			rewrite++
			w.result.Steps = append(w.result.Steps,
				report.StateStep{Do: "quarantine", Path: f.Path, Reason: f.Message}, report.StateStep{Do: "write", Path: f.Path})
		} else {
			w.lost = append(w.lost, &report.Problem{
				Kind: report.Damaged, Operation: "repair", Path: f.Path, Message: fmt.Sprintf("%s cannot be repaired: %s", f.Path, f.Message), Hint: f.Advice,
			})
		}
	}
	if rewrite == 0 {
		return nil
	}
	w.do = func(ctx context.Context, store *statestore.Store) error {
		repaired, err := store.Repair(ctx)
		if len(repaired) == rewrite && len(w.lost) > 0 && ctx.Err() == nil {
			return nil // the rest is what was found to be lost
		}
		return err
	}
	return nil
}

// planRollback plans to drop the versions above one.
func planRollback(s *sparkckpt.Store, w *storeWork, opts StateWorkOptions) error {
	w.result.Version = opts.Version
	steps, err := statestore.PlanRollback(s.Listing, opts.Version)
	if err != nil {
		return explainState(core.PathError("rollback", s.Dir, err))
	}
	for _, step := range steps {
		w.result.Steps = append(w.result.Steps, report.StateStep{Do: "delete", Path: path.Join(s.Dir, step.Name)})
	}
	if len(steps) > 0 {
		w.do = func(ctx context.Context, store *statestore.Store) error { return store.Rollback(ctx, opts.Version) }
	}
	return nil
}

// belowCommit refuses a rollback after which the query could not be started any more.
func belowCommit(c *sparkckpt.Checkpoint, opts StateWorkOptions) error {
	committed, known := certain(c)
	if !known || opts.Version >= committed || opts.BelowCommit {
		return nil
	}
	return &report.Problem{
		Kind: report.Refused, Operation: "rollback", Path: c.Dir,
		Message: fmt.Sprintf("the logs of %s say that version %d is committed: below it the query could not be started any more", c.Dir, committed),
		Hint: fmt.Sprintf("if you roll back every store, and take the batches from %d on out of commits and those from %d on out of offsets, with their .crc, use --below-commit",
			opts.Version, opts.Version+1),
	}
}
