// Package chunksum makes and verifies the sums that HDFS keeps of each chunk of a block (dfs.bytes-per-checksum, usually 512
// bytes): CRCs of four bytes each, big-endian, one behind the other, in the order of their chunks. The last chunk may be shorter.
//
// A CRC waits for each of its steps, so one chunk leaves most of the processor idle. Chunks do not depend on each other: where the
// processor has an instruction for the Castagnoli polynomial, three are summed up at once, which takes about half the time.
package chunksum
