package statestore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Options of a [Store]. The zero value is the documented default of every field.
//
// Who may read the files is the file system's affair: its options have the permission bits of new files and directories.
type Options struct {
	// Compression of the files that are written; the default is lz4, as Spark's. A query of Spark reads only what its offset
	// log pins. Reading tells it from the bytes, so a directory may hold several.
	Compression codec.Compression
	// CompressionLevel of zstd, 1 to 22. 0 is 1, as Spark.
	CompressionLevel int
	// AlwaysCompress compresses whatever the data. Without it blocks of an lz4 snapshot that would lose less than 30 % are stored
	// as they are: a file of such data is up to 43 % larger, takes less than half of the processor time to write, and loads
	// faster. Set it where space, or the way to the storage, is what is short.
	AlwaysCompress bool
	// RowChecksum: rows have checksums, as with spark.sql.streaming.stateStore.rowChecksum.enabled. It must be what the offset
	// log of the query pins; every row is then verified whenever it is read. A load of files that are otherwise is fs.ErrInvalid.
	RowChecksum bool
	// NoFooter leaves our footer out of the files that are written: they then are Spark's to the last byte, but damage is
	// found only as far as the compression finds it, and values must have a length that is a multiple of 8.
	NoFooter bool
	// MaxBytes is the largest key or value that is accepted. 0 is 128 MiB.
	MaxBytes int

	// Durability of every file; the default is the strongest that the file system declares.
	Durability core.Durability
	// MinReplicas as in core.CreateOptions.
	MinReplicas int
	// ReadOnly: nothing is ever written. Commit, Rollback and maintenance are fs.ErrPermission.
	ReadOnly bool

	// Snapshots says when maintenance takes a snapshot.
	Snapshots SnapshotPolicy
	// Cleanup says what maintenance keeps.
	Cleanup CleanupPolicy
	// SweepAge is how long ago a temporary of another program must have been written for maintenance to delete it. 0 is 24
	// hours; negative keeps them all. Its writer may be alive as long as that.
	SweepAge time.Duration

	// CachedVersions is how many versions stay in memory when nobody uses them. 0 is 2, as Spark; -1 is none.
	CachedVersions int
	// Budget bounds the memory of all stores that share it. nil is no bound.
	Budget *Budget
	// Parallelism is how many goroutines compress or decompress a file of some size. 0 is the number of processors, at most 4.
	Parallelism int

	// OwnerName is written into the claim for operators to read, for instance "host:pid".
	OwnerName string
	// Logger receives what cannot be returned: what was left behind, and what background maintenance met. nil is silent.
	Logger *slog.Logger
	// Now is the clock, for the age of temporaries and the times in [Stats]. The default is time.Now.
	Now func() time.Time
	// NewUUID makes the random names. The default makes random UUIDs of version 4.
	NewUUID func() (uuid.UUID, error)
}

const (
	defaultCachedVersions = 2
	defaultSweepAge       = 24 * time.Hour
	defaultMaxBytes       = 128 << 20
	maxParallelism        = 4
)

// Validate reports all problems of the settings at once, each naming its field; the error is fs.ErrInvalid, or
// core.ErrUnsupportedVersion for a compression that does not exist.
func (o Options) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: "+format, append([]any{fs.ErrInvalid}, args...)...))
	}
	if _, err := codec.ParseCompression(o.Compression.String()); err != nil {
		problems = append(problems, fmt.Errorf("Options.Compression: %w", err))
	}
	if o.CompressionLevel < 0 || o.CompressionLevel > 22 {
		bad("Options.CompressionLevel is %d: 1 to 22, or 0 for the default", o.CompressionLevel)
	}
	if o.MaxBytes < 0 || o.MaxBytes > 1<<30 {
		bad("Options.MaxBytes is %d: at most 1 GiB, or 0 for the default", o.MaxBytes)
	}
	if o.Durability > core.Synced {
		bad("Options.Durability is %d: no such durability", o.Durability)
	}
	if o.MinReplicas < 0 {
		bad("Options.MinReplicas is %d: it must not be negative", o.MinReplicas)
	}
	if o.CachedVersions < -1 {
		bad("Options.CachedVersions is %d: -1 for none, 0 for the default, or a number", o.CachedVersions)
	}
	if o.Parallelism < 0 {
		bad("Options.Parallelism is %d: it must not be negative", o.Parallelism)
	}
	if err := o.Snapshots.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("Options.Snapshots: %w", err))
	}
	if err := o.Cleanup.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("Options.Cleanup: %w", err))
	}
	return errors.Join(problems...)
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	switch o.CachedVersions {
	case 0:
		o.CachedVersions = defaultCachedVersions
	case -1:
		o.CachedVersions = 0
	}
	if o.SweepAge == 0 {
		o.SweepAge = defaultSweepAge
	}
	if o.Budget == nil {
		o.Budget = NewBudget(BudgetOptions{})
	}
	if o.Parallelism == 0 {
		o.Parallelism = min(runtime.GOMAXPROCS(0), maxParallelism)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewUUID == nil {
		o.NewUUID = uuid.NewRandom
	}
	return o
}

// suits checks what only the file system tells.
func (o Options) suits(fsys core.FileSystem) error {
	if o.ReadOnly {
		return nil
	}
	caps := fsys.Capabilities()
	if _, ok := caps.Resolve(o.Durability); !ok {
		return fmt.Errorf("%w: durability %s on %s", errors.ErrUnsupported, o.Durability, fsys.URI())
	}
	if o.MinReplicas > 1 && !caps.Replicas {
		return fmt.Errorf("%w: replicas on %s", errors.ErrUnsupported, fsys.URI())
	}
	if !caps.NoReplaceFiles {
		return fmt.Errorf("%w: renaming without replacing on %s, which a commit needs", errors.ErrUnsupported, fsys.URI())
	}
	return nil
}

func (o Options) create() core.CreateOptions {
	return core.CreateOptions{Durability: o.Durability, MinReplicas: o.MinReplicas}
}

// parallelFrom is the size in bytes from which a file is worth more than one goroutine.
const parallelFrom = 256 << 10

func (o Options) parallelism(size int64) int {
	if size < parallelFrom {
		return 0
	}
	return o.Parallelism
}

func (o Options) writer(name string, size int64) codec.WriterOptions {
	return codec.WriterOptions{
		Name: name, Compression: o.Compression, Level: o.CompressionLevel, AlwaysCompress: o.AlwaysCompress, RowChecksum: o.RowChecksum,
		NoFooter: o.NoFooter, MaxBytes: o.MaxBytes, Parallelism: o.parallelism(size),
	}
}

func (o Options) reader(name string, size int64) codec.ReaderOptions {
	return codec.ReaderOptions{Name: name, RowChecksum: o.RowChecksum, MaxBytes: o.MaxBytes, Parallelism: o.parallelism(size)}
}
