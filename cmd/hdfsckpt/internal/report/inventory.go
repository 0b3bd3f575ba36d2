package report

import (
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Inventory counts the files that a checkpoint needs, each once. Directories are not counted: what is needed of them is named
// file by file.
type Inventory struct {
	Objects int
	// Bytes are the recorded sizes. Of a file with segments only those of the segments are known: it counts up to the end of the
	// last one that is needed.
	Bytes        int64
	UnknownSizes int
	Checksummed  int
	Directories  int
}

// Add counts an object of which the first atLeast bytes are needed, if its size is not recorded.
func (i *Inventory) Add(object core.Object, atLeast int64) {
	if object.Directory {
		i.Directories++
		return
	}
	i.Objects++
	if object.Size < 0 {
		i.UnknownSizes++
		i.Bytes += atLeast
	} else {
		i.Bytes += object.Size
	}
	if object.Checksums != nil {
		i.Checksummed++
	}
}

// TakeInventory counts the objects of a checkpoint.
func TakeInventory(c *metadata.Checkpoint, objects []core.Object) Inventory {
	var i Inventory
	ends := SegmentEnds(c, objects)
	for _, object := range objects {
		i.Add(object, ends[object.Path])
	}
	return i
}
