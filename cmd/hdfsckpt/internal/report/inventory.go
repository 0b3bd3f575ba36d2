package report

import "github.com/hdfsckpt/hdfsckpt/core/metadata"

// Inventory counts the files that a checkpoint, or an operator of it, needs, each once. Directories are not counted: what is needed
// of them is named file by file.
type Inventory struct {
	Objects int `json:"objects"`
	// Bytes are the recorded sizes. Of a file with segments only those of the segments are known: it counts up to the end of the
	// last one that is needed.
	Bytes        int64 `json:"object_bytes"`
	UnknownSizes int   `json:"objects_of_unknown_size"`
	// Shared are the objects that other checkpoints may need too.
	Shared      int   `json:"shared_objects"`
	SharedBytes int64 `json:"shared_bytes"`
	Checksummed int   `json:"objects_with_checksum"`
	Directories int   `json:"directories"`
}

// NewInventory takes what the metadata says over.
func NewInventory(t metadata.FileTotals) Inventory {
	return Inventory{
		Objects: t.Files, Bytes: t.Bytes, UnknownSizes: t.UnknownSizes, Shared: t.Shared, SharedBytes: t.SharedBytes,
		Checksummed: t.Checksummed, Directories: t.Directories,
	}
}
