// Package wire holds what HDFS speaks: the messages of Hadoop RPC, of the NameNode's protocol and of the data port of
// DataNodes, generated from the .proto files of this folder by scripts/proto.sh, and the framing around them. What travels
// with every 64 KiB, [PacketHeader] and [PipelineAck], is coded by hand and allocates nothing.
//
// Decoders take what a hostile or broken peer sends: they return [ErrMalformed], never more than the given limits.
package wire
