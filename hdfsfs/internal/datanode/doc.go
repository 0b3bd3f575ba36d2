// Package datanode connects to the data port of DataNodes and asks them for operations. What a connection then carries —
// packets of a pipeline, packets of a block that is read — is the business of other packages.
//
//	client                                     DataNode
//	  │── version, op, message ────────────────►│   wire.AppendOp
//	  │◄──────────── delimited BlockOpResponse ─│   or the end of the stream: the node cannot serve it
//	  │        packets, acknowledgements        │
package datanode
