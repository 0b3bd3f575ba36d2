// Package metadata reads and writes `_metadata`, the file that makes a Flink checkpoint: which operators there were, which
// state their subtasks had, and where the bytes of that state are.
//
// A [Checkpoint] is the file as a Go value. [Parse] reads the versions 2 to 6 (Flink 1.3 to 2.3) with every kind of handle
// that Flink has ever written into them; [Append] and [Write] write the versions 3 to 6. What was parsed and not changed is
// written back byte for byte at its own version. [ReadObjects] lists the files that a checkpoint needs.
//
// Handles say where bytes are. A stream handle ([core.StreamHandle]) is one run of bytes: inline, a file, or a segment of a
// file. The handles of this package wrap stream handles and say what the bytes mean: operator state ([OperatorHandle]), keyed
// state ([KeyedHandle]) or data in flight ([ChannelHandle]).
//
// What Flink's format lacks — a checksum of the file, checksums of the state files, operator names below version 5, the
// durability — is in a [Footer] behind the body. Flink ignores bytes there.
//
// The input is never trusted: no count, length or nesting is believed beyond the bytes that are left, and the memory that
// Parse takes is bounded by a small multiple of the input. Values are not safe for concurrent use while one goroutine changes
// them; reading them concurrently is.
package metadata
