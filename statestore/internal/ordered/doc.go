// Package ordered holds versions of a sorted map in memory. A version is immutable and shares with the others what is
// equal: a new one costs its changes.
//
// A version is a B+tree that is copied on write, from a changed leaf up to the root. Its objects are few and mostly free of
// pointers, for the sake of the garbage collector and of the allocator's size classes:
//
//	inner node                      leaf
//	┌──────────────┐                ┌──────────────┐
//	│ keys ────────┼─► separators   │ keys ────────┼─► keys of up to 32 entries, one object (keys.go)
//	│ refs ────────┼─► ≤ 64 nodes   │ refs ────────┼─► values that were put, an object each (value.go)
//	└──────────────┘                │ packed ──────┼─► values as they were loaded, one object
//	                                │ over 0110…   │   which entries have their value in refs
//	                                └──────────────┘
//
// Overwriting copies a leaf's head and its refs, and shares keys and packed values. A leaf with more than a quarter of
// its packed values overwritten moves the others out, so that the block can go.
package ordered
