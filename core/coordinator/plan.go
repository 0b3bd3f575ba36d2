package coordinator

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// The decisions of the coordinator: functions of what was seen, without any effect.

// planSubsumption returns the ids of complete, which ascend, that are to be deleted so that the retain newest remain. Those
// in use stay, and so does the newest: there must be one to restore.
func planSubsumption(complete []int64, retain int, inUse map[int64]bool) []int64 {
	var surplus []int64
	for _, id := range complete[:max(0, len(complete)-max(retain, 1))] {
		if !inUse[id] {
			surplus = append(surplus, id)
		}
	}
	return surplus
}

// retainBeside is how many checkpoints are retained after a commit: the savepoint that a job stops with counts as one.
func retainBeside(retain int, stop bool) int {
	if stop {
		return max(1, retain-1)
	}
	return retain
}

// planRestore returns the complete checkpoints to try, newest first: one, or all if an older one will do.
func planRestore(entries []core.CheckpointEntry, restore Restore) []core.CheckpointEntry {
	var candidates []core.CheckpointEntry
	if restore.Fresh || restore.Pointer != "" {
		return nil
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].State != core.Complete {
			continue
		}
		candidates = append(candidates, entries[i])
		if !restore.AllowOlder {
			break
		}
	}
	return candidates
}

// planAborted returns the ids that an earlier coordinator may have left without reporting their abort. What lies below a
// checkpoint that was complete may itself have been, and the one that is restored settles what was before it.
func planAborted(entries []core.CheckpointEntry, restored *found) []int64 {
	var ids []int64
	for _, entry := range core.NeverCompleted(entries) {
		if restored.Empty() || entry.ID > restored.ID {
			ids = append(ids, entry.ID)
		}
	}
	return ids
}

// isDamage reports whether err says that a checkpoint is damaged or unknown to this release, rather than out of reach.
func isDamage(err error) bool {
	return errors.Is(err, core.ErrCorrupt) || errors.Is(err, core.ErrUnsupportedVersion)
}

// nextID returns the id of the next checkpoint: above that of every directory, whatever is in it, and of what is restored.
func nextID(entries []core.CheckpointEntry, restored int64) (int64, error) {
	next, err := core.NextID(entries)
	if err != nil {
		return 0, err
	}
	if restored+1 < restored {
		return 0, fmt.Errorf("%w: the restored checkpoint has the last id", fs.ErrInvalid)
	}
	return max(next, restored+1), nil
}

// matchOperators checks that the state of a checkpoint fits the operators of the job, all problems at once. The error is
// fs.ErrInvalid. Dropped are the operators whose state is not restored because the job does not have them. (The rules are
// those of Flink's Checkpoints.loadAndValidateCheckpoint.)
func matchOperators(c *metadata.Checkpoint, operators []Operator, allowNonRestored bool) (dropped []string, err error) {
	byID := make(map[metadata.OperatorID]Operator, len(operators))
	for _, op := range operators {
		byID[op.ID] = op
	}
	var problems []error
	for i := range c.Operators {
		state := &c.Operators[i]
		op, known := byID[state.ID]
		label := Operator{ID: state.ID, Name: state.Name, UID: state.UID}.label()
		switch {
		case known && op.MaxParallelism != state.MaxParallelism:
			problems = append(problems, fmt.Errorf(
				"%w: operator %s has max parallelism %d in the checkpoint and %d in the job: its key groups cannot be mapped",
				fs.ErrInvalid, label, state.MaxParallelism, op.MaxParallelism))
		case known || !hasState(state):
		case allowNonRestored:
			dropped = append(dropped, label)
		default:
			problems = append(problems, fmt.Errorf(
				"%w: the checkpoint has state of operator %s, which the job does not have; set Restore.AllowNonRestoredState to drop it",
				fs.ErrInvalid, label))
		}
	}
	return dropped, errors.Join(problems...)
}

func hasState(state *metadata.OperatorState) bool {
	if state.Coordinator != nil {
		return true
	}
	for _, subtask := range state.Subtasks {
		if subtask.State != nil && !subtask.State.Empty() {
			return true
		}
	}
	return false
}

// schedule is what the time of the next trigger depends on.
type schedule struct {
	interval, minPause time.Duration
	lastTrigger        time.Time // of Run, or the time at which it began
	lastEnd            time.Time // latest outcome of any checkpoint; zero for none
}

// next is the time of the next trigger.
func (s schedule) next() time.Time {
	at := s.lastTrigger.Add(s.interval)
	if pause := s.lastEnd.Add(s.minPause); !s.lastEnd.IsZero() && pause.After(at) {
		return pause
	}
	return at
}

// tooMany reports whether consecutive failures are more than can be tolerated.
func tooMany(failures, tolerable int) bool {
	return tolerable != UnlimitedFailures && failures > tolerable
}

// leftover is what an abort leaves.
type leftover uint8

const (
	nothingLeft leftover = iota
	// directoryLeft: the checkpoint is aborted, its directory is to be removed later.
	directoryLeft
	// outcomeUnclear: it may be complete.
	outcomeUnclear
	// fencedOff: another coordinator has taken over; everything is left to it.
	fencedOff
)

// afterDisposal decides what the disposal of an aborted checkpoint's directory means.
func afterDisposal(published progress, disposal error) leftover {
	switch {
	case disposal == nil:
		return nothingLeft
	case errors.Is(disposal, core.ErrFenced):
		return fencedOff
	case published == maybePublished:
		return outcomeUnclear
	}
	return directoryLeft
}
