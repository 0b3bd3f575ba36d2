package coordinator

import (
	"maps"
	"slices"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Uploads is what a task with incremental state knows of the shared files that it has uploaded, so that a file goes to the storage
// once and not with every checkpoint. It answers from checkpoints that are committed for certain: those that a trigger names as its
// base. The zero value is ready. It is safe for concurrent use.
//
//	reused, missing := uploads.Plan(trigger.Base, local)   // what the state consists of now
//	…                                                      // upload what is missing
//	uploads.Record(trigger.CheckpointID, files)            // reused and uploaded ones, before the acknowledgement
type Uploads struct {
	mu          sync.Mutex
	checkpoints map[int64]map[string]core.StreamHandle // by local path
}

// Plan divides the files that a task's state consists of now, by their local paths, into those that are part of the checkpoint
// base, with the handles that they have there, and those that are to be uploaded. Base 0 is none: everything is to be uploaded. Local
// paths must not be used again for other content. Both lists keep the order of local.
//
// What the plan gives stays in the storage until the checkpoint whose trigger named the base has its outcome.
func (u *Uploads) Plan(base int64, local []string) (reused []metadata.NamedFile, missing []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := u.checkpoints[base]
	if base == 0 {
		known = nil
	}
	for _, path := range local {
		if handle := known[path]; handle != nil {
			reused = append(reused, metadata.NamedFile{LocalPath: path, Handle: handle})
		} else {
			missing = append(missing, path)
		}
	}
	return reused, missing
}

// Record enters the shared files of a checkpoint: one that the task is about to acknowledge, or the one that it was restored
// from. The handles must be complete: no placeholders, and none of a pack that is not committed.
func (u *Uploads) Record(id int64, files []metadata.NamedFile) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.checkpoints == nil {
		u.checkpoints = map[int64]map[string]core.StreamHandle{}
	}
	known := make(map[string]core.StreamHandle, len(files))
	for _, file := range files {
		known[file.LocalPath] = file.Handle
	}
	u.checkpoints[id] = known
	if len(u.checkpoints) > maxRecorded {
		delete(u.checkpoints, slices.Min(slices.Collect(maps.Keys(u.checkpoints))))
	}
}

// maxRecorded is of how many checkpoints a task keeps a record if no notice comes. Of what was forgotten everything is uploaded
// anew.
const maxRecorded = 32

// Notice takes a notice of the coordinator into account: what is aborted or subsumed is forgotten. That one may be lost does no
// harm.
func (u *Uploads) Notice(n Notice) {
	if n.News == NewsCommitted {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.checkpoints, n.CheckpointID)
}

// Placeholders returns the files with placeholders for handles, for an acknowledgement: see core.PlaceholderOf. The given files
// must be part of the trigger's base; they are not changed.
func Placeholders(files []metadata.NamedFile) []metadata.NamedFile {
	short := slices.Clone(files)
	for i := range short {
		short[i].Handle = core.PlaceholderOf(short[i].Handle)
	}
	return short
}
