// Package hdfsfs is a [core.FileSystem] on HDFS (Hadoop 3), with Kerberos and with several NameNodes. It speaks to the
// NameNode and the DataNodes itself, without a JVM:
//
//	fsys, err := hdfsfs.Open(ctx, "ns1", hdfsfs.Options{})   // HADOOP_CONF_DIR says where ns1 is
//
// The client underneath is github.com/colinmarc/hdfs; what it does not do well enough for checkpoints is done here, or refused.
// The page docs/hdfs.md tells operators the same.
//
// # Durability
//
// Only core.Replicated is declared. When Close of a Writer returns nil, every block of the file has been acknowledged by all
// DataNodes of its pipeline, which were at least CreateOptions.MinReplicas, and the NameNode has closed the file. They hold it in
// memory and on its way to the disk: nothing is fsynced, unless the DataNodes run with dfs.datanode.synconclose. Sync is not
// supported, because the client cannot tell before Close what DataNodes have.
//
// # Writing
//
// There is no recovery: a file of which a DataNode or the NameNode fails is failed, with core.ErrUnavailable, and the caller
// writes another one. A DataNode's failure may be seen only at the end of the block, and the NameNode may name a dead DataNode
// again until it has noticed. Close never succeeds after any failure. It waits up to Options.CloseTimeout until the NameNode
// has heard of the replicas, and then the file is failed. Keep files within a block (Options.BlockSize): between two blocks the
// NameNode is needed.
//
// Abort removes a file by the number of its inode: wherever it was moved, and no other that took its name. A Writer whose file
// was removed, or is another's by lease recovery, fails with fs.ErrNotExist.
//
// # Reading
//
// Readers read the inode that they were opened for, whatever becomes of its name. The checksums that HDFS keeps for each
// dfs.bytes-per-checksum bytes are verified, and a damaged replica is passed over for a good one; if there is none, the error
// is core.ErrCorrupt. That holds for files written with at least as many bytes per checksum as the NameNode's default, and with
// checksums at all. ReadAt uses a connection for each goroutine that reads at a time.
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
// With errors.ErrUnsupported: files and directories with erasure coding or in an encryption zone, which the client would read
// or write wrongly; clusters that ask for more than authentication of data transfer (dfs.data.transfer.protection without
// "authentication", dfs.encrypt.data.transfer). With hadoop.rpc.protection=privacy answers are encrypted, but requests, with the
// names of files, are not; and two callers who remove one name at the same time may both be told that they did.
//
// # Costs
//
// Each failed write may leave a goroutine and about 0.25 MiB in the client underneath until the process ends; [FS.Counts] counts
// them. Each connection to the NameNode renews its leases once a second.
package hdfsfs
