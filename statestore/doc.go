// Package statestore keeps versioned state in the files of Spark's HDFS-backed state store.
//
// A store is a directory. Version 0 is the empty store; the commit of version v writes v.delta, the changes since v-1, in
// one atomic step, also if there are none. v.snapshot holds all entries of v and can be made again from the deltas. Loading
// v is reading the newest snapshot at or below v, if any, and the deltas after it in order: none may be missing.
//
//	1.delta ── 2.delta ── 3.delta ── 4.delta ── 5.delta
//	                      3.snapshot
//	                      └─────────── 4 ─────── 5        what version 5 is loaded from
//
// Names are in files.go. What to read, when to take a snapshot and what to delete is decided in plan.go by pure functions
// over a [Listing]; the bytes of the files are package codec's.
package statestore
