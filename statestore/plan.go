package statestore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// GapError says that a version cannot be rebuilt because a delta is missing. It is fs.ErrNotExist.
type GapError struct {
	Version int64 // that was asked for
	Missing int64 // the highest version whose delta is needed and not there
}

func (e *GapError) Error() string {
	return fmt.Sprintf("version %d cannot be rebuilt: %s is missing", e.Version, FileName(e.Missing, codec.Delta))
}

// Unwrap makes the error fs.ErrNotExist.
func (e *GapError) Unwrap() error { return fs.ErrNotExist }

// AheadError says that there are files of versions above the one that work starts from: of an abandoned branch, or of a
// former run. Roll back to the version, or choose another directory. It is fs.ErrExist.
type AheadError struct {
	Version int64
	Above   []int64
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("there are versions above %d, the lowest %d and the highest %d", e.Version, e.Above[0], e.Above[len(e.Above)-1])
}

// Unwrap makes the error fs.ErrExist.
func (e *AheadError) Unwrap() error { return fs.ErrExist }

// Replay says what a version is loaded from.
type Replay struct {
	Version int64
	// Base is the version of the snapshot to begin with; 0 is the empty store.
	Base int64
	// Deltas are applied in order: every version from Base+1 to Version.
	Deltas []int64
}

// PlanReplay returns the ways to load version v, the shortest first. The others are for the case that its snapshot is
// damaged: they make the same version. Version 0 is the empty store. A negative version is fs.ErrInvalid, one without
// files fs.ErrNotExist, one that lacks a delta a *GapError.
func PlanReplay(l Listing, v int64) ([]Replay, error) {
	switch {
	case v < 0:
		return nil, fmt.Errorf("%w: version %d", fs.ErrInvalid, v)
	case v == 0:
		return []Replay{{}}, nil
	}
	at, ok := l.find(v)
	if !ok {
		return nil, notThere(l, v)
	}
	type start struct {
		base   int64
		deltas int // after it
	}
	var starts []start
	var deltas []int64 // newest first
	need := v
	for i := at; i >= 0 && l.Versions[i].Version == need; i-- {
		f := l.Versions[i]
		if f.Snapshot {
			starts = append(starts, start{f.Version, len(deltas)})
		}
		if !f.Delta {
			break
		}
		deltas = append(deltas, f.Version)
		need--
	}
	if need == 0 {
		starts = append(starts, start{0, len(deltas)})
	}
	if len(starts) == 0 {
		return nil, &GapError{Version: v, Missing: need}
	}
	slices.Reverse(deltas)
	plans := make([]Replay, 0, len(starts))
	for _, s := range starts {
		// All share one array: there may be many plans, and each is the end of the longest.
		plans = append(plans, Replay{Version: v, Base: s.base, Deltas: deltas[len(deltas)-s.deltas:]})
	}
	return plans, nil
}

func notThere(l Listing, v int64) error {
	if len(l.Versions) > 0 && v < l.Versions[0].Version {
		return fmt.Errorf("version %d: %w: versions below %d were cleaned up", v, fs.ErrNotExist, l.Versions[0].Version)
	}
	return fmt.Errorf("version %d: %w: the highest is %d", v, fs.ErrNotExist, l.Highest())
}

// PlanLatest returns the highest version. If it cannot be rebuilt the error says why, and no older version is taken in its
// place; LatestLoadable does that on request.
func PlanLatest(l Listing) (int64, error) {
	v := l.Highest()
	if _, err := PlanReplay(l, v); err != nil {
		return 0, err
	}
	return v, nil
}

// Loadable returns the versions whose files are complete, ascending. What is in the files is not looked at.
func Loadable(l Listing) []int64 {
	var loadable []int64
	previous := int64(0)
	complete := true // the previous version is loadable; version 0 is
	for _, f := range l.Versions {
		complete = f.Snapshot || f.Delta && complete && f.Version == previous+1
		previous = f.Version
		if complete {
			loadable = append(loadable, f.Version)
		}
	}
	return loadable
}

// LatestLoadable returns the highest loadable version, 0 if there is none.
func LatestLoadable(l Listing) int64 {
	if loadable := Loadable(l); len(loadable) > 0 {
		return loadable[len(loadable)-1]
	}
	return 0
}

// CommitPlan says what the commit after a version meets.
type CommitPlan struct {
	Version int64
	// Exists: the version is there already. Equal content is success, other content a conflict.
	Exists bool
}

// PlanCommit decides whether a commit may follow version base. Versions above the new one are an *AheadError; a directory
// or a link in the file's place is fs.ErrExist; a base without a successor is fs.ErrInvalid.
func PlanCommit(l Listing, base int64) (CommitPlan, error) {
	if base < 0 || base > maxVersion {
		return CommitPlan{}, fmt.Errorf("%w: commit after version %d", fs.ErrInvalid, base)
	}
	v := base + 1
	if name := FileName(v, codec.Delta); slices.Contains(l.Blocked, name) {
		return CommitPlan{}, fmt.Errorf("%w: %s is not a regular file", fs.ErrExist, name)
	}
	if err := nothingAbove(l, v); err != nil {
		return CommitPlan{}, err
	}
	if base > 0 {
		if _, err := PlanReplay(l, base); err != nil {
			return CommitPlan{}, err
		}
	}
	_, exists := l.find(v)
	return CommitPlan{Version: v, Exists: exists}, nil
}

func nothingAbove(l Listing, v int64) error {
	i, ok := l.find(v)
	if ok {
		i++
	}
	if i == len(l.Versions) {
		return nil
	}
	e := &AheadError{Version: v}
	for _, f := range l.Versions[i:] {
		e.Above = append(e.Above, f.Version)
	}
	return e
}

// SnapshotPolicy says when a snapshot is due. The zero value is Spark's default.
type SnapshotPolicy struct {
	// MinDeltas: due when more deltas than this must be replayed. 0 is 10, as Spark; strictly more, as Spark.
	MinDeltas int
	// ReplayFactor: also due when the deltas have more bytes than this many times the snapshot they follow. 0 switches it off.
	ReplayFactor int
}

const defaultMinDeltas = 10

// Validate reports all problems; they are fs.ErrInvalid.
func (p SnapshotPolicy) Validate() error {
	var problems []error
	if p.MinDeltas < 0 {
		problems = append(problems, fmt.Errorf("%w: MinDeltas %d", fs.ErrInvalid, p.MinDeltas))
	}
	if p.ReplayFactor < 0 {
		problems = append(problems, fmt.Errorf("%w: ReplayFactor %d", fs.ErrInvalid, p.ReplayFactor))
	}
	return errors.Join(problems...)
}

// SnapshotPlan says whether a snapshot is due, and of what.
type SnapshotPlan struct {
	Version int64 // newest committed
	Deltas  int   // to be replayed for it
	Due     bool
}

// PlanSnapshot decides about a snapshot of version last, the newest that the caller has committed; 0 is the highest in the
// listing. A version that cannot be rebuilt, or versions above last, are an error: a snapshot would then hide the damage.
func PlanSnapshot(l Listing, last int64, p SnapshotPolicy) (SnapshotPlan, error) {
	if err := p.Validate(); err != nil {
		return SnapshotPlan{}, err
	}
	last, err := newest(l, last)
	if err != nil || last == 0 {
		return SnapshotPlan{}, err
	}
	plans, err := PlanReplay(l, last)
	if err != nil {
		return SnapshotPlan{}, err
	}
	shortest := plans[0]
	plan := SnapshotPlan{Version: last, Deltas: len(shortest.Deltas)}
	minimum := p.MinDeltas
	if minimum == 0 {
		minimum = defaultMinDeltas
	}
	plan.Due = plan.Deltas > minimum
	if p.ReplayFactor > 0 && shortest.Base > 0 {
		i, _ := l.find(shortest.Base)
		bytes := int64(0)
		for _, f := range l.Versions[i+1 : i+1+plan.Deltas] {
			bytes += f.DeltaBytes
		}
		plan.Due = plan.Due || bytes/int64(p.ReplayFactor) > l.Versions[i].SnapshotBytes
	}
	return plan, nil
}

// newest checks what a caller holds to be the newest version.
func newest(l Listing, last int64) (int64, error) {
	switch {
	case last < 0:
		return 0, fmt.Errorf("%w: version %d", fs.ErrInvalid, last)
	case last == 0:
		return l.Highest(), nil
	}
	return last, nothingAbove(l, last)
}

// StepOp is what a step of a plan does.
type StepOp uint8

// The steps.
const (
	StepVerify StepOp = iota + 1 // read the file to its end; if that fails, stop: what follows depends on it
	StepDelete                   // delete the file; if that fails, stop. That it is gone already is success
)

// Step is one action of a plan. Steps are taken in order, and stopping after any of them leaves every retained version
// loadable.
type Step struct {
	Op   StepOp
	Name string
}

// CleanupPolicy says what must stay.
type CleanupPolicy struct {
	// Retain is how many versions stay loadable, the newest included. At least 1; 0 is 100. Spark's minBatchesToRetain keeps
	// one more.
	Retain int
	// MaxDeletes bounds the versions that one plan deletes, oldest first. 0 is no bound.
	MaxDeletes int
}

const defaultRetain = 100

// Validate reports all problems; they are fs.ErrInvalid.
func (p CleanupPolicy) Validate() error {
	var problems []error
	if p.Retain < 0 {
		problems = append(problems, fmt.Errorf("%w: Retain %d", fs.ErrInvalid, p.Retain))
	}
	if p.MaxDeletes < 0 {
		problems = append(problems, fmt.Errorf("%w: MaxDeletes %d", fs.ErrInvalid, p.MaxDeletes))
	}
	return errors.Join(problems...)
}

// CleanupPlan says what is deleted and why that is safe.
type CleanupPlan struct {
	Oldest   int64   // version that must stay loadable; 0 if nothing is due
	Base     int64   // snapshot that it is loaded from; 0 is the empty store
	Steps    []Step  // verify the base, then delete, oldest first
	Stranded []int64 // older versions behind a gap: of another run perhaps, so they stay
}

// PlanCleanup decides what goes when last is the newest version that the caller has committed; 0 is the highest in the
// listing. Deleted are the files of versions below the snapshot that the oldest retained version is loaded from, if no
// version is missing in between. What cannot be rebuilt, and versions above last, are an error, and nothing goes. After a
// rollback there may be fewer versions than are to stay; then nothing is due.
//
// A snapshot that is known to be damaged must be left out of the listing, see [Listing.WithoutSnapshot].
func PlanCleanup(l Listing, last int64, p CleanupPolicy) (CleanupPlan, error) {
	if err := p.Validate(); err != nil {
		return CleanupPlan{}, err
	}
	last, err := newest(l, last)
	if err != nil || last == 0 {
		return CleanupPlan{}, err
	}
	retain := int64(p.Retain)
	if retain == 0 {
		retain = defaultRetain
	}
	if _, err := PlanReplay(l, last); err != nil {
		return CleanupPlan{}, err
	}
	if retain >= last {
		return CleanupPlan{}, nil
	}
	plan := CleanupPlan{Oldest: last - retain + 1}
	plans, err := PlanReplay(l, plan.Oldest)
	if err != nil {
		if lowest := Loadable(l)[0]; lowest > plan.Oldest {
			return CleanupPlan{}, nil // the versions below were cleaned up before a rollback
		}
		return CleanupPlan{}, err
	}
	if plan.Base = plans[0].Base; plan.Base == 0 {
		return plan, nil
	}
	plan.deletions(l, p.MaxDeletes)
	return plan, nil
}

// deletions adds the steps for the run of versions that ends just below the base.
func (p *CleanupPlan) deletions(l Listing, maxDeletes int) {
	end, _ := l.find(p.Base)
	start := end
	for start > 0 && l.Versions[start-1].Version == l.Versions[start].Version-1 {
		start--
	}
	for _, f := range l.Versions[:start] {
		p.Stranded = append(p.Stranded, f.Version)
	}
	if maxDeletes > 0 {
		end = min(end, start+maxDeletes)
	}
	if start == end {
		return
	}
	p.Steps = append(p.Steps, Step{StepVerify, FileName(p.Base, codec.Snapshot)})
	// Oldest first, so that a plan that stops leaves no gap, which would strand what is below it.
	for _, f := range l.Versions[start:end] {
		p.Steps = appendDeletes(p.Steps, l, f)
	}
}

// appendDeletes deletes a version. Companions go before their file: one that stays behind would condemn a later file of
// that name in the eyes of Spark 4.1. The snapshot goes before the delta, so that what is left never is a snapshot alone.
func appendDeletes(steps []Step, l Listing, f VersionFiles) []Step {
	for _, kind := range []codec.Kind{codec.Snapshot, codec.Delta} {
		if kind == codec.Snapshot && !f.Snapshot || kind == codec.Delta && !f.Delta {
			continue
		}
		name := FileName(f.Version, kind)
		for _, companion := range l.Companions[name] {
			steps = append(steps, Step{StepDelete, companion})
		}
		steps = append(steps, Step{StepDelete, name})
	}
	return steps
}

// PlanRollback returns the steps that drop every version above v, newest first, so that stopping leaves an older end and no
// gap. Version v itself must be loadable.
func PlanRollback(l Listing, v int64) ([]Step, error) {
	if _, err := PlanReplay(l, v); err != nil {
		return nil, err
	}
	var steps []Step
	for i := len(l.Versions) - 1; i >= 0 && l.Versions[i].Version > v; i-- {
		steps = appendDeletes(steps, l, l.Versions[i])
	}
	return steps, nil
}

// PlanSweep returns the steps that delete temporaries and companions without a file that were last written before the given
// time, save those in use here. The time must be so far back that no writer can be alive: age is all that is known of it.
func PlanSweep(l Listing, before time.Time, inUse func(name string) bool) []Step {
	var steps []Step
	for _, leftovers := range [][]Leftover{l.Temps, l.Orphans} {
		for _, f := range leftovers {
			if f.ModTime.Before(before) && (inUse == nil || !inUse(f.Name)) {
				steps = append(steps, Step{StepDelete, f.Name})
			}
		}
	}
	return steps
}

// maxVersion is the highest version that has a successor.
const maxVersion = math.MaxInt64 - 1
