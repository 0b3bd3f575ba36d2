// Package statestore keeps versioned state in the files of Spark's HDFS-backed state store, on any core.FileSystem.
//
// A store is a directory. Version 0 is the empty store; the commit of version v writes v.delta, the changes since v-1, in
// one atomic step, also if there are none. v.snapshot holds all entries of v and can be made again from the deltas. Loading
// v is reading the newest snapshot at or below v, if any, and the deltas after it in order: none may be missing.
//
//	1.delta ── 2.delta ── 3.delta ── 4.delta ── 5.delta
//	                      3.snapshot
//	                      └─────────── 4 ─────── 5        what version 5 is loaded from
//
// [Open] returns the store of a directory, a [Provider] those of a whole job with one memory budget and one maintenance.
// [Store.Begin] begins a transaction on a version and [Tx.Commit] makes the next; [Store.Load] returns a [View] of a
// version. Versions in memory share what is equal, so that one more costs its changes. When a batch is done once more,
// equal content is success and other content a conflict; [Store.Rollback] drops versions for good. One owner writes at a
// time: an older one is fenced.
//
// Names are in files.go. What to read, when to take a snapshot and what to delete is decided in plan.go by pure functions
// over a [Listing]; the bytes of the files are package codec's.
//
// # Memory and time
//
// A version that was loaded takes little more than its keys and values: they are packed, some tens to a block. A value that
// was put is an object of its own, with one byte in front of it below 128 bytes and two from there on, and Go's allocator rounds that up to
// its next size (16 bytes apart up to 256, then an eighth to a quarter). So values of 127 bytes take 128 and those of 128
// take 144; of 1022 1024, of 1023 1152. Where the length of rows is yours to choose, stay at or below such a border.
//
// Changes of a transaction are made in groups of a few tens: the processor then waits for memory once for all of them. So
// many puts in a row cost less than as many pairs of a Get and a Put. A put of the value that is there already changes
// nothing and is not written.
//
// # What a backend on disk will keep
//
// Nothing in the interface says that state is in memory: Get and iterators can fail, what they return is valid only as long
// as their comments say, and views are closed.
package statestore
