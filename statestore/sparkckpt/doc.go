// Package sparkckpt reads the checkpoint directory of a Spark streaming query: its logs, its operators, and the versions of
// its state stores, of the HDFS-backed provider and, where its changelogs suffice, of RocksDB's.
//
//	<checkpoint>/
//	    metadata                             {"id":"<query>"}
//	    offsets/<batch>                      what batch reads, and the configuration that the query was pinned to
//	    commits/<batch>                      batch is done; in checkpoint format 2 with the ids of its state
//	    state/<operator>/
//	        _metadata/metadata, _metadata/v2/<batch>      name of the operator, its stores and number of partitions
//	        _stateSchema/<store>/<batch>_<uuid>           schemas, version 3
//	        <partition>[/<store>]/           a state store, see package statestore
//	            _metadata/schema             schemas, versions 1 and 2; in partition 0
//
// Batch n reads version n of every store and commits version n+1. The offset log pins provider, compression and row
// checksums; where there is none (a store that is looked at by itself) they are told from the files.
//
// Nothing in this package writes. It may be used on the directory of a running query: a file that the query replaces or
// cleans up meanwhile is read as it was or is an error, never a mix.
package sparkckpt
