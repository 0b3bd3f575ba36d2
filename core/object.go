package core

// Object is a file that a checkpoint needs in order to be restored, as its `_metadata` names it.
type Object struct {
	// Path is qualified, such as "file:/ckpt/…/chk-7/4d1c…"; that of a relative handle is resolved against the checkpoint's
	// directory.
	Path string
	// Size is the recorded length in bytes, -1 if unknown.
	Size int64
	// Relative: the handle was relative, so that the file moves with the checkpoint's directory.
	Relative bool
	// Directory: Path is a directory of which everything is needed (Flink's file merging).
	Directory bool
	// FlagByte: the file is one byte longer than Size (Flink's changelog files begin with a byte that is not counted).
	FlagByte bool
	// Checksums of the bytes, nil where none are recorded.
	Checksums *Checksums
}

// ReadObjects parses the bytes of a `_metadata` file that lies in the qualified directory dir and returns the objects it
// needs, each path once. It must fail rather than leave one out: what is deleted depends on it. Package metadata has the
// implementation; it is a value here because that package imports this one.
type ReadObjects func(data []byte, dir string) ([]Object, error)
