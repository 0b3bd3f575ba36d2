package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Defaults, those of Flink where it has the setting.
const (
	// DefaultTimeout is how long a checkpoint may take by default.
	DefaultTimeout = 10 * time.Minute
	// DefaultMaxInlineBytes is how much inline state a checkpoint may have by default.
	DefaultMaxInlineBytes = 64 << 20
	// UnlimitedFailures as TolerableFailures lets Run go on after any number of failures.
	UnlimitedFailures = -1
)

// Options of a [Coordinator]. The zero value is the documented default of every field that is not required.
type Options struct {
	// Storage of the job; required. The tasks must use one with the same settings.
	Storage *core.Storage

	// Operators of the job; required.
	Operators []Operator

	// Send delivers a trigger to every task of every operator; required. It may return before the tasks have answered, and may
	// also let them answer before it returns. An error aborts the checkpoint; core.ErrFenced, from a task that
	// knows of a newer coordinator, ends this one. ctx ends with the checkpoint's outcome. Triggers are sent one after the
	// other, in the order of their ids. It must not trigger or close, and it must heed ctx: the checkpoint waits for it, so one that
	// does not return when ctx has ended holds the checkpoint up beyond Timeout, and the triggers behind it.
	Send func(ctx context.Context, trigger Trigger) error

	// Interval is the time between two checkpoints of Run, from trigger to trigger. 0 is none: Run triggers nothing. MinPause and
	// MaxConcurrent may delay a trigger; triggers that were missed are not made up for.
	Interval time.Duration

	// MinPause is the least time between the outcome of a checkpoint and the next trigger of Run.
	MinPause time.Duration

	// Timeout of a checkpoint, from the trigger to the commit; 0 is DefaultTimeout.
	Timeout time.Duration

	// MaxConcurrent is how many checkpoints and savepoints may be under way at the same time; 0 is 1. Further triggers wait.
	MaxConcurrent int

	// TolerableFailures is how many checkpoints of Run may fail one after the other before Run returns an error. 0 is none, as
	// in Flink: the first failure ends Run. UnlimitedFailures is any number. A checkpoint that was subsumed has not failed.
	TolerableFailures int

	// Retain is how many of the newest checkpoints are kept; 0 is 1. Savepoints do not count.
	Retain int

	// MaxInlineBytes is how much inline state a checkpoint may have in all, since it is held in memory and in one metadata
	// file; 0 is DefaultMaxInlineBytes. The acknowledgement that exceeds it aborts the checkpoint.
	MaxInlineBytes int64

	// NoBorrowers says that no other job refers to files of this job's directory. Then deleting a checkpoint with shared files reads
	// no other checkpoint; without it those of all jobs beside this one are read each time. It is true unless another program, such as
	// a job of Flink, was restored from a checkpoint of this job and goes on using its files: jobs of this package never do. What
	// a borrower needs would be deleted.
	NoBorrowers bool

	// Restore says what Start restores. The default is the newest checkpoint of the job directory, if there is one.
	Restore Restore

	// OnCommitted is called after each commit of a checkpoint, and of a savepoint that the job stops with, one call after the
	// other in the order of the ids. Other savepoints are not reported: restores do not go back to them, so what depends on them
	// must not become visible. Start repeats the call for the checkpoint that it restores. An error does not change the commit;
	// it is returned by the call that made the checkpoint (Start, Run, Trigger…), and ends Run. It must not trigger or close.
	OnCommitted func(ctx context.Context, committed Committed) error

	// OnAborted is called after each abort. It may come more than once for a checkpoint, from Start too, and not at all if the
	// process dies; never for one that was committed. Its context ends at the latest 10 s after that of the checkpoint. It must not trigger or close.
	OnAborted func(ctx context.Context, aborted Aborted)

	// Notify tells the workers what became of a checkpoint or savepoint: after each commit, before OnCommitted; after each abort,
	// before OnAborted; and when a checkpoint is subsumed, before its files are deleted. It is a help and no more: a notice may be
	// lost with the process, and a worker learns from Trigger.Base what is committed. It must be quick, must not trigger or close, and
	// must heed ctx.
	Notify func(ctx context.Context, notice Notice)

	// Observer receives events; nil is none. [Counters] is one.
	Observer Observer

	// MetadataVersion of the `_metadata` files: 3 to 6; 0 is 4, which Flink reads from 1.16 on.
	MetadataVersion int

	// NoSweep makes Start leave alone what earlier coordinators have left behind.
	NoSweep bool

	// Now is the clock; time.Now by default.
	Now func() time.Time

	// Logger receives what cannot be returned, such as files that could not be deleted. nil is silent.
	Logger *slog.Logger
}

// Restore says what Start restores.
type Restore struct {
	// Pointer names the checkpoint or savepoint to restore: its qualified directory or its metadata file. "" is the newest
	// checkpoint of the job directory. A pointer counts at every Start, also when newer checkpoints exist: clear it once the
	// first new checkpoint is committed.
	Pointer string

	// AllowOlder restores the newest checkpoint that can be read if newer ones are damaged. By default a damaged one is an error:
	// going back is a decision. Storage that cannot be reached is an error in any case.
	AllowOlder bool

	// Fresh restores nothing, although there may be checkpoints. These stay until they are subsumed by new ones. Not together
	// with Pointer.
	Fresh bool

	// Claim says whose the restored checkpoint is from then on.
	Claim ClaimMode

	// AllowNonRestoredState lets state be dropped whose operator is not in Options.Operators. By default it is an error.
	AllowNonRestoredState bool
}

// Validate reports all problems of the settings at once, each naming its field; the error is fs.ErrInvalid.
func (o Options) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: "+format, append([]any{fs.ErrInvalid}, args...)...))
	}
	if o.Storage == nil {
		bad("Options.Storage is missing")
	}
	if o.Send == nil {
		bad("Options.Send is missing")
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Interval", o.Interval}, {"MinPause", o.MinPause}, {"Timeout", o.Timeout}} {
		if d.value < 0 {
			bad("Options.%s is %v: it must not be negative", d.name, d.value)
		}
	}
	for _, n := range []struct {
		name  string
		value int64
	}{{"MaxConcurrent", int64(o.MaxConcurrent)}, {"Retain", int64(o.Retain)}, {"MaxInlineBytes", o.MaxInlineBytes}} {
		if n.value < 0 {
			bad("Options.%s is %d: it must not be negative", n.name, n.value)
		}
	}
	if o.TolerableFailures < UnlimitedFailures {
		bad("Options.TolerableFailures is %d: it must not be negative, except UnlimitedFailures", o.TolerableFailures)
	}
	if o.MetadataVersion != 0 && (o.MetadataVersion < 3 || o.MetadataVersion > 6) {
		bad("Options.MetadataVersion is %d: 3 to 6, or 0 for 4", o.MetadataVersion)
	}
	if o.Restore.Claim > NoClaim {
		bad("Options.Restore.Claim is %d: ClaimByPlace, Claim or NoClaim", o.Restore.Claim)
	}
	if o.Restore.Fresh && o.Restore.Pointer != "" {
		bad("Options.Restore: Fresh and Pointer exclude each other")
	}
	o.validateOperators(bad)
	return errors.Join(problems...)
}

func (o Options) validateOperators(bad func(format string, args ...any)) {
	if len(o.Operators) == 0 {
		bad("Options.Operators is empty")
	}
	seen := map[metadata.OperatorID]int{}
	for i, op := range o.Operators {
		if op.ID == (metadata.OperatorID{}) && op.UID == "" {
			bad("Options.Operators[%d] has neither ID nor UID", i)
			continue
		}
		op = op.withDefaults()
		if first, twice := seen[op.ID]; twice {
			bad("Options.Operators[%d] has the id of Operators[%d]: %s", i, first, op.ID)
		}
		seen[op.ID] = i
		if op.MaxParallelism < 1 || op.MaxParallelism > metadata.MaxKeyGroups {
			bad("Options.Operators[%d].MaxParallelism is %d: 1 to %d", i, op.MaxParallelism, metadata.MaxKeyGroups)
		}
		if op.Parallelism < 1 || op.Parallelism > op.MaxParallelism {
			bad("Options.Operators[%d].Parallelism is %d: 1 to MaxParallelism, which is %d", i, op.Parallelism, op.MaxParallelism)
		}
		if len(op.Name) > maxText || len(op.UID) > maxText {
			bad("Options.Operators[%d]: Name and UID have at most %d bytes", i, maxText)
		}
	}
}

// maxText is the longest text that fits into a metadata file whatever its characters are.
const maxText = 65535 / 3

func (o Options) withDefaults() Options {
	operators := make([]Operator, len(o.Operators))
	for i, op := range o.Operators {
		operators[i] = op.withDefaults()
	}
	o.Operators = operators
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	o.MaxConcurrent = max(o.MaxConcurrent, 1)
	o.Retain = max(o.Retain, 1)
	if o.MaxInlineBytes == 0 {
		o.MaxInlineBytes = DefaultMaxInlineBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
