package sparkckpt

import (
	"strconv"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Keys of Spark's configuration that the offset log pins and that this package goes by.
const (
	confProvider     = "spark.sql.streaming.stateStore.providerClass"
	confCompression  = "spark.sql.streaming.stateStore.compression.codec"
	confRowChecksum  = "spark.sql.streaming.stateStore.rowChecksum.enabled"
	confMergeVersion = "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion"
	confPartitions   = "spark.sql.shuffle.partitions"
)

// Provider is the implementation of a state store.
type Provider uint8

// The providers.
const (
	UnknownProvider Provider = iota // the store has no files, and no offset log says it
	HDFSBacked
	RocksDB
)

// String returns "hdfs", "rocksdb" or "unknown".
func (p Provider) String() string {
	switch p {
	case HDFSBacked:
		return "hdfs"
	case RocksDB:
		return "rocksdb"
	}
	return "unknown"
}

// Pins is the configuration that a query is pinned to for the life of its checkpoint.
type Pins struct {
	// Batch is the entry of the offset log that it was read from, -1 if there is none that can be read.
	Batch int64
	// Conf are all pinned keys.
	Conf map[string]string
}

// Known reports whether there was an offset log to read.
func (p Pins) Known() bool { return p.Batch >= 0 }

// Provider returns the pinned provider. It is unknown for a class that is neither of Spark's two; absent it is HDFSBacked,
// which was the only one.
func (p Pins) Provider() Provider {
	class, pinned := p.Conf[confProvider]
	switch {
	case !p.Known():
		return UnknownProvider
	case !pinned, strings.HasSuffix(class, ".HDFSBackedStateStoreProvider"):
		return HDFSBacked
	case strings.HasSuffix(class, ".RocksDBStateStoreProvider"):
		return RocksDB
	}
	return UnknownProvider
}

// ProviderClass returns the pinned class, "" if there is none.
func (p Pins) ProviderClass() string { return p.Conf[confProvider] }

// Compression returns the pinned compression; absent it is lz4. known is false without offset log, and for a class that
// this module does not know.
func (p Pins) Compression() (c codec.Compression, known bool) {
	name, pinned := p.Conf[confCompression]
	if !pinned {
		return codec.LZ4, p.Known()
	}
	c, err := codec.ParseCompression(strings.ToLower(name))
	return c, err == nil
}

// RowChecksum returns whether rows have checksums; absent they have none. known is false without offset log.
func (p Pins) RowChecksum() (on, known bool) {
	on, err := strconv.ParseBool(p.Conf[confRowChecksum])
	return on && err == nil, p.Known()
}

// mergeDelimiter stands between the values that RocksDB merged: a comma in checkpoints that do not pin the version of the
// merge operator, nothing since.
func (p Pins) mergeDelimiter() string {
	version, pinned := p.Conf[confMergeVersion]
	if p.Known() && (!pinned || version == "1") {
		return ","
	}
	return ""
}

// Partitions returns spark.sql.shuffle.partitions, the number of partitions of most operators; 0 if it is not pinned.
func (p Pins) Partitions() int64 {
	n, err := strconv.ParseInt(p.Conf[confPartitions], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
