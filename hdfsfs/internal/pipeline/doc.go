// Package pipeline writes the blocks of one HDFS file through pipelines of DataNodes, and goes on when nodes fail.
//
// The caller's goroutine cuts the bytes into packets with their checksums. The streamer, a goroutine of the file, sends them;
// a goroutine for each pipeline reads the acknowledgements. A packet stays in memory until all nodes have acknowledged it, so
// that it can be sent again. At most Options.Window packets are in memory.
//
// To wake a goroutine costs more than to send a packet. So in the middle of a stream packets go out several at a time, several
// acknowledgements are waited for, and the caller is woken when there is room for several packets; a packet that nothing is under
// way before goes at once, and so does what Sync and Close wait for. A file that fits into one packet is sent by Close itself.
//
//	Write ──► packets ──► streamer ──► node 0 ──► node 1 ──► node 2
//	             ▲                        │
//	             └── acknowledged ◄───────┘
//
// A block goes through these states:
//
//	         addBlock              all acknowledged,                  acknowledged
//	(none) ───────────► STREAMING ─────────────────► CLOSING ────────────────────► (none), next block or complete
//	   ▲                 │    ▲      last packet        │
//	   │ set-up fails:   │    │                         │ a node fails: recover, with the stage of closing;
//	   └─ abandonBlock, ─┤    │ recovered               ▼ nothing is sent again
//	      exclude node   │    │                      RECOVERING ──► (none)
//	                     ▼    │
//	                   RECOVERING: leave the node out; perhaps add one and copy the block to it (getAdditionalDatanode,
//	                   TRANSFER_BLOCK); updateBlockForPipeline; set the pipeline up with the new generation stamp;
//	                   updatePipeline; send again what was not acknowledged
//
// A block that has fewer nodes than Options.MinReplicas is not begun, nor gone on with: nodes that have failed get another chance and
// the cluster some time; then the file fails.
//
// The last packet of a block, which is empty, is held back until everything before it is acknowledged: then all replicas
// have the same length when they are finalised, which recovery at that stage needs.
package pipeline
