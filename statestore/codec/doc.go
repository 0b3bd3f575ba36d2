// Package codec reads and writes the files of Spark's state stores byte for byte: the deltas and snapshots of the
// HDFS-backed provider, and the changelogs of RocksDB's.
//
// A file is a sequence of records inside a compression. Integers of records are big-endian.
//
//	delta, snapshot            changelog of version 2 and 4
//	┌────────────────────────┐ ┌──────────────────────────────────┐
//	│ int32 keyLen │ key     │ │ 00 02 "v2" │ 4: UTF lineage JSON │
//	│ int32 valueLen │ value │ │ 01 │ keyLen │ key │ valLen │ val │ put
//	├────────────────────────┤ │ 10 │ keyLen │ key │ -1           │ delete
//	│ keyLen │ key │ -1      │ │ 11 │ keyLen │ key │ valLen │ val │ merge
//	├────────────────────────┤ │ 20 │ len │ begin │ len │ end     │ delete range
//	│ -1                     │ │ 00                               │ EOF
//	└────────────────────────┘ └──────────────────────────────────┘
//
// Versions 1 and 3 of a changelog have the records of a delta, 3 after "v3" and its lineage. The EOF record is compulsory.
// In a delta every negative valueLen is a removal; a valueLen is floored to a multiple of 8. Row checksums, where a query
// has them, stand in front of values and of removed keys.
//
// Around that is one of lz4-java's blocks, zstd, ning's LZF or xerial's snappy (drawn in lz4.go, lzf.go and snappy.go);
// behind it, unless it is switched off, stands our footer (footer.go), which Spark does not see: counts, a CRC32C for each
// MiB, and for snapshots a sparse index of keys. Anything else behind the EOF record is core.ErrCorrupt.
//
// Readers believe no length before the bytes are there. Goroutines run only with Parallelism above 1, and have ended when
// Close returns.
package codec
