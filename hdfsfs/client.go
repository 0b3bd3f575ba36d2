package hdfsfs

import (
	"context"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/blockread"
)

// client is what this package needs of HDFS, so that there can be more than one. A client does what it is told and says what
// happened; names, capabilities, waiting, retries and the classes of errors are the business of FS.
//
// Its calls may block until their own time limits are over, never longer. Errors of the NameNode are *remoteError, those of
// connections *connError; nothing has to be an *fs.PathError. All methods of a client are safe for concurrent use, those of
// its writers, readers and listings are not, except where they say so.
type client interface {
	features() features

	// create makes a file exclusively; the parent must exist.
	create(ctx context.Context, name string, spec createSpec) (clientWriter, error)
	stat(ctx context.Context, name string) (status, error)
	mkdirs(ctx context.Context, name string, perm uint32) error
	// rename is atomic. If replace is false it fails with FileAlreadyExistsException where newname is taken by anything; if it is
	// true a file is replaced, and a directory only by a file never.
	rename(ctx context.Context, oldname, newname string, replace bool) error
	// remove reports false if there was nothing to remove.
	remove(ctx context.Context, name string, recursive bool) (bool, error)

	// counts may be called at any time.
	counts() Counts
	// close breaks what is under way, and what is begun later; wait waits until it is over.
	close()
	wait()
}

// streamClient is a client that is told what it opens, and whose reads may hang. FS reads through blocks of its own then, and leaves them behind.
type streamClient interface {
	client
	// open prepares to read the file of that status, whatever has become of its name.
	open(ctx context.Context, file status) (clientReader, error)
	// list prepares to list the directory of that status, whatever has become of its name.
	list(ctx context.Context, dir status) (clientListing, error)
}

// directClient is a client whose reads end with their contexts, so that they may have the caller's memory and goroutine. It finds
// out itself what is not readable, or no directory, which saves a call.
type directClient interface {
	client
	// openDirect opens a file. The context governs it.
	openDirect(ctx context.Context, name string) (*blockread.File, error)
	// listDirect prepares to list a directory, whatever becomes of its name after the first page.
	listDirect(name string) clientListing
	// checksum returns the CRC32C of a file, and its length.
	checksum(ctx context.Context, name string) (uint32, int64, error)
}

// features are what one client can do and another cannot.
type features struct {
	// sync: clientWriter.sync gives bytes their durability, and files can be synced.
	sync bool
	// repeats: a call whose answer is lost is repeated under its number until it is answered, so that there is nothing to find out.
	repeats bool
	// direct: what a clientWriter does ends by itself, soon after the context of create has ended or discard was called.
	direct bool
}

// createSpec says how a file is made.
type createSpec struct {
	perm        uint32
	replication int   // 0: what the NameNode says
	blockSize   int64 // the same
	// minReplicas is how many DataNodes must have each block, as core.CreateOptions say; a client that cannot see to it leaves that
	// to FS.
	minReplicas int
	// synced: the DataNodes fsync what is synced, and each block at its end. Only a client with features.sync is asked for it.
	synced bool
	// storagePolicy is the name of one; "" is that of the directory.
	storagePolicy string
}

// status is what the NameNode tells of a file or a directory.
type status struct {
	id          uint64 // of the inode, which no other file ever has
	name        string // base name
	dir         bool
	symlink     bool
	size        int64
	perm        uint32 // with 01000, the sticky bit
	modified    time.Time
	replication int
	erasure     bool // stored in an erasure-coded layout, or a directory whose new files are
	encrypted   bool // in an encryption zone
}

// clientWriter writes one new file.
type clientWriter interface {
	// status is that of the file when it was created.
	status() status
	// write takes all of p or fails; it may report a failure of earlier bytes. p is not used after the return.
	write(p []byte) error
	// sync does what features.sync says.
	sync() error
	// finish commits the file after writes of which none has failed. It returns the smallest number of DataNodes that have
	// acknowledged a block of it; for a file without blocks that is the highest number there is.
	finish(limit time.Duration) (replicas int, err error)
	// discard lets go of what the writer holds; removed says that the file is gone. It must be called unless finish has
	// succeeded.
	discard(removed bool)
	// interrupt makes a call that hangs fail. It may be called at any time.
	interrupt()
}

// clientReader reads one file.
type clientReader interface {
	// readAt fills p from inside the file, or fails. Bytes that it returns have the checksums of HDFS.
	readAt(p []byte, off int64) (int, error)
	// position is where it could go on without a new connection.
	position() int64
	// close also makes a call that hangs fail. It may be called at any time, and again.
	close()
}

// clientListing lists a directory by pages, in the order of the server.
type clientListing interface {
	// next returns a page and whether there may be more.
	next(ctx context.Context) (page []status, more bool, err error)
	close()
}
