package core

import (
	"fmt"
	"path"
)

// DisposalFacts is what is known of a checkpoint that is to be disposed of.
type DisposalFacts struct {
	// URI of the file system and Dir, the name of the checkpoint's exclusive directory.
	URI, Dir string
	// SharedDir is the name of the job's shared directory, "" for a savepoint, which has none.
	SharedDir string
	// Entries is the complete listing of Dir.
	Entries []FileInfo
	// Objects are the files that the checkpoint's metadata names.
	Objects []Object
	// Needed holds the qualified paths that other checkpoints need.
	Needed map[string]bool
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
	Remove []string     // names, in an order that leaves shared files for last
	Kept   []KeptObject // by name, with the reason
}

// PlanDisposal decides what disposing of a checkpoint deletes: only what it alone owns.
//
//   - In its own directory: the files that its metadata names, files named like state files (those of workers that were
//     late), and temporaries of its metadata. Everything else there is foreign and kept.
//   - In the job's shared directory: the files that its metadata names and no other checkpoint needs.
//   - Anything else that its metadata names is kept: task-owned state, and files of other jobs or places.
func PlanDisposal(facts DisposalFacts) DisposalPlan {
	var plan DisposalPlan
	named := map[string]bool{}
	for _, object := range facts.Objects {
		if !object.Directory {
			named[object.Path] = true
		}
	}
	inDir := map[string]bool{}
	for _, entry := range facts.Entries {
		name := join(facts.Dir, entry.Name)
		qualified := Qualify(facts.URI, name)
		inDir[qualified] = true
		switch {
		case entry.Name == MetadataName || entry.Name == DisposedName:
			// The executor renames the one and removes the other last.
		case entry.IsDir():
			plan.keep(name, "a directory that is not the checkpoint's own")
		case facts.Needed[qualified]:
			plan.keep(name, "another checkpoint needs it")
		case named[qualified] || IsStateFileName(entry.Name) || isMetadataTempName(entry.Name) || isBarrierName(entry.Name):
			plan.Remove = append(plan.Remove, name)
		default:
			plan.keep(name, "a foreign file")
		}
	}
	for _, object := range facts.Objects {
		if !inDir[object.Path] {
			plan.outside(facts, object)
		}
	}
	return plan
}

// outside decides about an object that is not an entry of the checkpoint's directory.
func (p *DisposalPlan) outside(facts DisposalFacts, object Object) {
	uri, name, err := SplitQualified(object.Path)
	switch {
	case err != nil:
		p.keep(object.Path, "not a path")
	case uri != "" && uri != facts.URI:
		p.keep(object.Path, "on another file system")
	case Within(facts.Dir, name) && path.Dir(name) == facts.Dir:
		// Named, but gone already: an earlier run removed it.
	case Within(facts.Dir, name):
		p.keep(name, "below a directory that is not the checkpoint's own")
	case facts.SharedDir == "" || !Within(facts.SharedDir, name):
		p.keep(name, "outside of the checkpoint's and the job's shared directory")
	case object.Directory:
		p.keep(name, "a directory of merged files")
	case facts.Needed[object.Path]:
		p.keep(name, "another checkpoint needs it")
	case facts.SharedBlocked != "":
		p.keep(name, facts.SharedBlocked)
	default:
		p.Remove = append(p.Remove, name)
	}
}

func (p *DisposalPlan) keep(name, reason string) {
	p.Kept = append(p.Kept, KeptObject{Path: name, Reason: reason})
}

// unreadable is the reason not to delete what an unreadable checkpoint may need.
func unreadable(name string) string {
	return fmt.Sprintf("%s cannot be read, and may need it", name)
}
