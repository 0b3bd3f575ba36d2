// Package blockread reads the blocks of HDFS files from DataNodes, and goes on when nodes fail or their replicas are damaged.
//
// No byte reaches the caller before its chunk has the checksum that the DataNode keeps for it. A [Client] holds what all files
// share: connections that can be used again, and which nodes have failed lately. A [File] holds the places of its blocks and a
// few streams that are open.
//
//	client                                              DataNode
//	  │── READ_BLOCK: block, offset, length, token ────────►│
//	  │◄── BlockOpResponse: kind of checksum, chunk offset ─│
//	  │◄── packets: header, checksums, data ────────────────│   from the chunk of the offset to that of the end
//	  │◄── a packet without data, the last ─────────────────│
//	  │── ClientReadStatus: CHECKSUM_OK ───────────────────►│   then the connection takes the next request, for 4 s
//
// One read goes through these states, for each block:
//
//	        next node of the block, in the order of the NameNode: first those that are not known to be dead
//	CHOOSE ────────────────────────────────────────────────────────────────────────────────────────► READ ──► done
//	  ▲ │                                                                                             │
//	  │ │ none is left       token refused ── locations again, the same node once more ───────────────┤
//	  │ ▼                    connection lost in mid-stream ── the same node once more ────────────────┤
//	  │ REGROUP: wait,       wrong checksum ── the replica is bad: reported afterwards, next node ────┤
//	  └─ locations again     anything else ── next node; one that cannot be reached is dead for all ──┘
//
// There is no read-ahead by goroutines: the receive buffer of the connection is the read-ahead. Of a plain connection the system
// puts the data of several packets into the caller's memory by one call, where they are verified, and a reader that is faster than
// its node is woken for every 256 KiB. Of one that is wrapped each packet is read by itself.
package blockread
