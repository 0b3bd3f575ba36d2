package core

import (
	"fmt"
	"path"
)

// DisposalFacts is what is known of a checkpoint that is to be disposed of.
type DisposalFacts struct {
	// URI of the file system and Dir, the name of the checkpoint's exclusive directory.
	URI, Dir string
	// SharedDir and TaskOwnedDir are the names of these directories of the job, "" for a savepoint, which has none.
	SharedDir, TaskOwnedDir string
	// Entries is the complete listing of Dir.
	Entries []FileInfo
	// Objects are the files that the checkpoint's metadata names.
	Objects []Object
	// Needed is what other checkpoints need.
	Needed NeededNames
	// Place, where the storage scatters its files by entropy, tells the places of files outside of Dir; else nil.
	Place func(qualified string) Place
	// SharedBlocked, if not "", is the reason why no shared file may be deleted: what others need is not known completely.
	SharedBlocked string
}

// KeptObject is something a disposal leaves, and why.
type KeptObject struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// DisposalPlan is what a disposal deletes and what it leaves.
type DisposalPlan struct {
	Remove []string     // names, each once
	Kept   []KeptObject // with the reason
}

// Why something is kept.
const (
	keptDirectory  = "a directory that is not the checkpoint's own"
	keptBelowOne   = "below a directory that is not the checkpoint's own"
	keptNeeded     = "another checkpoint needs it"
	keptForeign    = "a foreign file"
	keptMerged     = "a directory of merged files"
	keptNoPath     = "not a path"
	keptElsewhere  = "on another file system"
	keptOutside    = "outside of the checkpoint's and the job's shared directory"
	keptOnRequest  = "shared files are kept as asked"
	keptOtherEntry = "not a part of the job directory"
	keptNewerClaim = "a newer claim has begun"
)

// PlanDisposal decides what disposing of a checkpoint deletes: only what it alone owns.
//
//   - In its own directory: the files that its metadata names, files named like state files (those of workers that were
//     late), and temporaries of its metadata. Everything else there is foreign and kept.
//   - In the job's shared directory, and where workers have packed their states: the files that its metadata names and no
//     other checkpoint needs.
//   - Where the storage scatters files by entropy: the same in the directories that stand for these two.
//   - Anything else that its metadata names is kept: task-owned state, and files of other jobs or places.
func PlanDisposal(facts DisposalFacts) DisposalPlan {
	var plan DisposalPlan
	named := map[string]bool{}
	for _, object := range facts.Objects {
		if uri, name, err := SplitQualified(object.Path); err == nil && facts.onThis(uri) && !object.Directory {
			named[name] = true
		}
	}
	settled := map[string]bool{}
	for _, entry := range facts.Entries {
		name := join(facts.Dir, entry.Name)
		settled[name] = true
		switch {
		case isMetadataName(entry.Name):
			// The executor renames these and removes them last.
		case entry.IsDir():
			plan.keep(name, keptDirectory)
		case facts.Needed.Cover(name):
			plan.keep(name, keptNeeded)
		case named[name] || IsStateFileName(entry.Name) || isMetadataTempName(entry.Name) || isBarrierName(entry.Name):
			plan.Remove = append(plan.Remove, name)
		default:
			plan.keep(name, keptForeign)
		}
	}
	for _, object := range facts.Objects {
		plan.outside(facts, object, settled)
	}
	return plan
}

// place tells where an object lies that is not directly in the checkpoint's directory.
func (f *DisposalFacts) place(object Object, name string) Place {
	switch {
	case f.SharedDir != "" && name != f.SharedDir && Within(f.SharedDir, name):
		return InSharedDir
	case f.TaskOwnedDir != "" && isPackedFile(f.TaskOwnedDir, name):
		return InPackDir
	case f.Place != nil:
		return f.Place(object.Path)
	}
	return Elsewhere
}

// onThis reports whether a path with this URI is on the file system of the checkpoint.
func (f *DisposalFacts) onThis(uri string) bool { return uri == "" || uri == f.URI }

// outside decides about an object, unless it is an entry of the checkpoint's directory or was decided about before.
func (p *DisposalPlan) outside(facts DisposalFacts, object Object, settled map[string]bool) {
	uri, name, err := SplitQualified(object.Path)
	switch {
	case err != nil:
		p.keep(object.Path, keptNoPath)
		return
	case !facts.onThis(uri):
		p.keep(object.Path, keptElsewhere)
		return
	case settled[name]:
		return
	}
	settled[name] = true
	switch place := facts.place(object, name); {
	case parentDir(name) == facts.Dir:
		// Named, but gone already: an earlier run removed it.
	case Within(facts.Dir, name):
		p.keep(name, keptBelowOne)
	case object.Directory && IsPackDirName(path.Base(name)):
		// It is a directory of the worker, not of the checkpoint. Its files are decided about one by one.
	case place != InSharedDir && place != InCheckpointDir && place != InPackDir:
		p.keep(name, keptOutside)
	case object.Directory:
		p.keep(name, keptMerged)
	case facts.Needed.Cover(name):
		p.keep(name, keptNeeded)
	case place != InCheckpointDir && facts.SharedBlocked != "":
		p.keep(name, facts.SharedBlocked)
	default:
		p.Remove = append(p.Remove, name)
	}
}

func (p *DisposalPlan) keep(name, reason string) {
	p.Kept = append(p.Kept, KeptObject{Path: name, Reason: reason})
}

// unreadable is the reason not to delete what an unreadable checkpoint or job may need.
func unreadable(name string) string {
	return fmt.Sprintf("%s cannot be read, and may need it", name)
}
