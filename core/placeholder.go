package core

// A placeholder stands for a shared state that the coordinator knows from an earlier checkpoint, in an acknowledgement only: it
// names the state and leaves out the rest, above all the checksums. It is a handle of the same type whose size is unknown.

// PlaceholderOf returns what a task may acknowledge instead of a handle of shared state that is part of the base of its trigger.
// Handles that cannot stand in for others, such as inline state, are returned as they are.
func PlaceholderOf(handle StreamHandle) StreamHandle {
	switch h := handle.(type) {
	case *FileHandle:
		return &FileHandle{Path: h.Path, Size: -1}
	case *SegmentHandle:
		return &SegmentHandle{Path: h.Path, Offset: h.Offset, Size: -1, Scope: h.Scope, LogicalID: h.LogicalID}
	}
	return handle
}

// IsPlaceholder reports whether a handle has the form of PlaceholderOf. A handle in a `_metadata` file may have it too: there
// it means a file whose writer did not know the size.
func IsPlaceholder(handle StreamHandle) bool {
	switch h := handle.(type) {
	case *FileHandle:
		return h.Size == -1 && h.Checksums == nil
	case *SegmentHandle:
		return h.Size == -1 && h.Checksums == nil
	}
	return false
}
