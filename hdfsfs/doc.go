// Package hdfsfs is a [core.FileSystem] on HDFS (Hadoop 3), with Kerberos and with several NameNodes. It speaks to the
// NameNode and the DataNodes itself, without a JVM:
//
//	fsys, err := hdfsfs.Open(ctx, "ns1", hdfsfs.Options{})   // HADOOP_CONF_DIR says where ns1 is
//
// There are two clients underneath, see [Options].Client: [ClientNative], this project's own, which is the default without
// Kerberos, and [ClientLibrary], github.com/colinmarc/hdfs; what that does not do well enough for checkpoints is done here, or
// refused. The page docs/hdfs.md tells operators the same.
//
// # Durability
//
// core.Replicated: when Close of a Writer returns nil, every block of the file has been acknowledged by all DataNodes of its
// pipeline, which were at least CreateOptions.MinReplicas, and the NameNode has closed the file. They hold it in memory and on its
// way to the disk: nothing is fsynced, unless the DataNodes run with dfs.datanode.synconclose.
//
// core.Synced, with the native client, which then is the default: each of those DataNodes has also fsynced each block. Sync does
// the same for what was written so far, which other clients then can read; with core.Replicated it does so without fsync. With
// the library's client Sync is not supported, because that cannot tell before Close what DataNodes have.
//
// # Writing
//
// The native client goes on when DataNodes fail or hang and when the NameNode is away for a while; a file fails with
// core.ErrUnavailable when fewer than MinReplicas DataNodes are left. The library's client has no recovery: a file of which a
// DataNode or the NameNode fails is failed, and the caller writes another one; keep files within a block (Options.BlockSize).
// Close never succeeds after any failure. It waits up to Options.CloseTimeout until the NameNode has heard of the replicas, and
// then the file is failed.
//
// Abort removes a file by the number of its inode: wherever it was moved, and no other that took its name. A Writer whose file
// was removed, or is another's by lease recovery, fails with fs.ErrNotExist.
//
// A file whose writer has died keeps its name taken: Create is fs.ErrExist, as for a file whose writer lives, which it does not
// disturb. Remove, RemoveAll and both renames work on it at once, and Open reads what its DataNodes have acknowledged. Who wants it
// closed, with what was synced, calls [FS.CloseAbandoned].
//
// # Reading
//
// Readers read the inode that they were opened for, whatever becomes of its name. The checksums that HDFS keeps are verified,
// and a damaged replica is passed over for a good one; if there is none, the error is core.ErrCorrupt. The native client
// verifies whatever the writer of the file has chosen, refuses replicas without checksums, reports damaged ones to the NameNode,
// and reads into the caller's memory. For the library's client the promise holds for files written with at least as many bytes
// per checksum as the NameNode's default, and with checksums at all.
//
// # Renames
//
// Both modes are one call of the NameNode, rename2 without or with overwriting, so a RenameNoReplace has exactly one winner,
// also against Create, for files and for directories, and a process that dies in between leaves nothing behind.
//
// # Outages
//
// A request whose answer is lost is sent again under the same number, to whichever NameNode is active, and the retry cache of
// the NameNodes tells whether it was executed before. Calls are repeated for Options.RetryFor (30 s) while there is no active
// NameNode or it is in safe mode; then they are core.ErrUnavailable. What is still in doubt is looked for (Rename), or said
// (Create, Remove). Every connection has a deadline, so a server that hangs costs Options.CallTimeout or Options.DataTimeout;
// a call returns earlier if its context ends, and what it leaves behind is counted in [FS.Counts] and waited for by Close.
//
// # What is refused
//
// With errors.ErrUnsupported: files with erasure coding or in an encryption zone, and with the library's client new files in
// erasure-coded directories, which it would write wrongly; clusters that ask for more than authentication of data transfer
// (dfs.data.transfer.protection without "authentication", dfs.encrypt.data.transfer); the native client with Kerberos. With
// hadoop.rpc.protection=privacy answers are encrypted, but requests, with the names of files, are not; and two callers who
// remove one name at the same time may both be told that they did.
//
// # Costs
//
// The native client has one connection to the NameNode, and renews its leases every 30 s while files are open. With the library's
// client each failed write may leave a goroutine and about 0.25 MiB until the process ends; [FS.Counts] counts them; each of its
// connections to the NameNode renews its leases once a second.
package hdfsfs
