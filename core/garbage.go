package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// GarbageFacts is a complete look at a job directory, taken when nobody but the owner can publish in it.
type GarbageFacts struct {
	JobDir string
	// Epoch is the owner's.
	Epoch uint64
	// Dirs holds the complete listings: of the job directory, its shared and taskowned directories and the directories of packed
	// states in them, and every directory of a checkpoint, also of one that a disposal has moved aside, by name.
	Dirs map[string][]FileInfo
	// Needed is what complete checkpoints need, of this job and of its neighbours.
	Needed NeededNames
	// Blocked, if not "", is the reason why Needed may be incomplete.
	Blocked string
}

// GarbagePlan is what no complete checkpoint of a job needs.
type GarbagePlan struct {
	// Resume are the ids whose disposal has begun, and has something left to do.
	Resume []int64
	// Abandoned are the ids of checkpoints that were never completed and hold nothing foreign.
	Abandoned []int64
	// Remove are names of single files: in complete checkpoints' directories, in abandoned ones with foreign content, in shared,
	// and packed ones.
	Remove []string
	// EmptyPacks are the names of directories of packed states with nothing in them but what is removed.
	EmptyPacks []string
	// Emptied are the names of directories that a finished disposal has moved aside to remove them.
	Emptied []string
	// Epochs are those before the owner's that have a directory: a late claimer made it.
	Epochs []uint64
	// Kept are entries that are not ours, or that may be needed, with the reason.
	Kept []KeptObject
}

// PlanGarbage decides what a sweep of a job directory removes: exactly what has the form of our own files and no complete
// checkpoint needs. Task-owned state is never garbage, its tasks decide, but packed state of checkpoints is. If it is not known completely what is needed, no
// state file of a complete checkpoint or of the shared directory is garbage.
func PlanGarbage(facts GarbageFacts) GarbagePlan {
	var plan GarbagePlan
	for _, entry := range facts.Dirs[facts.JobDir] {
		name := join(facts.JobDir, entry.Name)
		id, isCheckpoint := ParseCheckpointDirName(entry.Name)
		epoch, isEpoch := parseEpochDirName(entry.Name)
		switch {
		case isCheckpoint && entry.IsDir():
			plan.checkpointDir(facts, id, name)
		case isEpoch && entry.IsDir():
			switch {
			case epoch < facts.Epoch:
				plan.Epochs = append(plan.Epochs, epoch)
			case epoch > facts.Epoch:
				plan.keep(name, keptNewerClaim)
			}
		case entry.IsDir() && isEmptiedDirName(entry.Name):
			plan.emptiedDir(facts, name)
		case entry.Name == SharedDirName && entry.IsDir():
			plan.unneeded(facts, name)
			plan.packs(facts, name)
		case entry.Name == TaskOwnedDirName && entry.IsDir():
			plan.packs(facts, name)
		case isRestoredMarkName(entry.Name) && !entry.IsDir():
			// It is the coordinator's.
		default:
			plan.keep(name, keptOtherEntry)
		}
	}
	slices.Sort(plan.Resume)
	slices.Sort(plan.Abandoned)
	return plan
}

func (p *GarbagePlan) checkpointDir(facts GarbageFacts, id int64, dir string) {
	entries := facts.Dirs[dir]
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e FileInfo) bool { return e.Name == name })
	}
	switch {
	case has(MetadataName):
		p.unneeded(facts, dir)
	case has(DisposedName):
		p.Resume = append(p.Resume, id)
	case has(emptiedName):
		p.disposedDir(facts, id, dir)
	case slices.ContainsFunc(entries, func(e FileInfo) bool { return !isOurs(e) || facts.Needed.Cover(join(dir, e.Name)) }):
		p.unneeded(facts, dir)
	default:
		p.Abandoned = append(p.Abandoned, id)
	}
}

// disposedDir decides about a directory whose disposal is finished: it is garbage unless it is there because of foreign
// content alone.
func (p *GarbagePlan) disposedDir(facts GarbageFacts, id int64, dir string) {
	var kept []KeptObject
	mayGo := false
	for _, entry := range facts.Dirs[dir] {
		name := join(dir, entry.Name)
		switch {
		case entry.Name == emptiedName:
		case facts.Needed.Cover(name):
			kept = append(kept, KeptObject{Path: name, Reason: keptNeeded})
		case isOurs(entry):
			mayGo = true
		default:
			kept = append(kept, KeptObject{Path: name, Reason: keptForeign})
		}
	}
	if mayGo || len(kept) == 0 {
		p.Resume = append(p.Resume, id)
		return
	}
	p.Kept = append(p.Kept, kept...)
}

// emptiedDir decides about a directory that a disposal has moved aside.
func (p *GarbagePlan) emptiedDir(facts GarbageFacts, dir string) {
	if !canGo(dir, facts.Dirs[dir], nil) {
		p.keep(dir, keptForeign)
		return
	}
	p.Emptied = append(p.Emptied, dir)
}

// packs decides about the directories of packed states in a directory.
func (p *GarbagePlan) packs(facts GarbageFacts, dir string) {
	for _, entry := range facts.Dirs[dir] {
		if !entry.IsDir() || !IsPackDirName(entry.Name) {
			continue
		}
		name, before := join(dir, entry.Name), len(p.Remove)
		p.unneeded(facts, name)
		if len(p.Remove)-before == len(facts.Dirs[name]) {
			p.EmptyPacks = append(p.EmptyPacks, name)
		}
	}
}

// unneeded marks the files of a directory that have the form of ours and that nothing needs.
func (p *GarbagePlan) unneeded(facts GarbageFacts, dir string) {
	for _, entry := range facts.Dirs[dir] {
		name := join(dir, entry.Name)
		switch {
		case entry.Name == MetadataName || facts.Needed.Cover(name):
		case entry.IsDir() && IsPackDirName(entry.Name) && dir == join(facts.JobDir, SharedDirName):
			// see packs
		case !isOurs(entry):
			p.keep(name, keptForeign)
		case facts.Blocked != "":
			p.keep(name, facts.Blocked)
		default:
			p.Remove = append(p.Remove, name)
		}
	}
}

func (p *GarbagePlan) keep(name, reason string) {
	p.Kept = append(p.Kept, KeptObject{Path: name, Reason: reason})
}

// isOurs reports whether an entry has the form of what the storage itself writes into a state directory.
func isOurs(entry FileInfo) bool {
	return !entry.IsDir() && (IsStateFileName(entry.Name) || isMetadataTempName(entry.Name) || isBarrierName(entry.Name))
}

// GatherGarbage takes the look that PlanGarbage decides on.
func (o *Owner) GatherGarbage(ctx context.Context, read ReadObjects) (GarbageFacts, error) {
	fsys, jobDir := o.storage.fsys, o.storage.JobDir()
	facts := GarbageFacts{JobDir: jobDir, Epoch: o.epoch, Dirs: map[string][]FileInfo{}}
	entries, err := listAll(ctx, fsys, jobDir)
	if err != nil {
		return facts, err
	}
	facts.Dirs[jobDir] = entries
	for _, entry := range entries {
		_, isCheckpoint := ParseCheckpointDirName(entry.Name)
		base := entry.Name == SharedDirName || entry.Name == TaskOwnedDirName
		if !entry.IsDir() || !isCheckpoint && !base && !isEmptiedDirName(entry.Name) {
			continue
		}
		name := join(jobDir, entry.Name)
		if facts.Dirs[name], err = listAll(ctx, fsys, name); ignoreMissing(err) != nil {
			return facts, err
		}
	}
	if err := facts.gatherPacks(ctx, fsys); err != nil {
		return facts, err
	}
	all, err := collectNeeds(ctx, fsys, jobDir, "", read)
	facts.Needed, facts.Blocked = all.names, all.blocked
	return facts, err
}

// gatherPacks lists the directories of packed states.
func (f *GarbageFacts) gatherPacks(ctx context.Context, fsys FileSystem) error {
	for _, dir := range []string{join(f.JobDir, SharedDirName), join(f.JobDir, TaskOwnedDirName)} {
		for _, entry := range f.Dirs[dir] {
			if !entry.IsDir() || !IsPackDirName(entry.Name) {
				continue
			}
			name := join(dir, entry.Name)
			entries, err := listAll(ctx, fsys, name)
			if ignoreMissing(err) != nil {
				return err
			}
			f.Dirs[name] = entries
		}
	}
	return nil
}

func listAll(ctx context.Context, fsys FileSystem, dir string) ([]FileInfo, error) {
	var entries []FileInfo
	for info, err := range fsys.List(ctx, dir) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, info)
	}
	return entries, nil
}

// SweepReport tells what a sweep did.
type SweepReport struct {
	Resumed   []int64      `json:"resumed,omitempty"`
	Abandoned []int64      `json:"abandoned,omitempty"`
	Removed   []string     `json:"removed,omitempty"`
	Kept      []KeptObject `json:"kept,omitempty"`
}

// Sweep removes what earlier owners left behind (see PlanGarbage). Call it after Claim and before the first Begin: state
// files of a checkpoint in progress look like garbage. It is repeatable; after an error it has removed only garbage.
func (o *Owner) Sweep(ctx context.Context, read ReadObjects) (*SweepReport, error) {
	facts, err := o.GatherGarbage(ctx, read)
	if err != nil {
		return nil, err
	}
	plan := PlanGarbage(facts)
	report := &SweepReport{Kept: plan.Kept}
	if err := o.Check(ctx); err != nil {
		return report, err
	}
	var problems []error
	for _, id := range plan.Resume {
		done, err := o.Dispose(ctx, id, DisposeOptions{Read: read})
		if errors.Is(err, errNotComplete) {
			continue // the older owner has just finished it; a late file that is left is garbage of the next sweep
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		report.Resumed = append(report.Resumed, id)
		report.Kept = append(report.Kept, done.Kept...)
	}
	for _, id := range plan.Abandoned {
		location := &PendingLocation{Location: o.storage.checkpointLocation(id), owner: o, id: id}
		if err := location.DisposeOnFailure(ctx); err != nil {
			problems = append(problems, err)
			continue
		}
		report.Abandoned = append(report.Abandoned, id)
	}
	for _, dir := range plan.Emptied {
		problems = append(problems, takeApart(ctx, o.storage.fsys, dir, facts.Dirs[dir]))
	}
	for _, epoch := range plan.Epochs {
		if err := o.fenceEpoch(ctx, epoch); err != nil {
			problems = append(problems, err)
		}
	}
	removed, err := removeFiles(ctx, o.storage.fsys, plan.Remove)
	report.Removed = removed
	problems = append(problems, err)
	if err == nil {
		for _, dir := range plan.EmptyPacks {
			problems = append(problems, removeIfEmpty(ctx, o.storage.fsys, dir))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return report, fmt.Errorf("the sweep is incomplete: %w", err)
	}
	return report, nil
}
