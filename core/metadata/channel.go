package metadata

import "github.com/hdfsckpt/hdfsckpt/core"

// Channel is the part of a [ChannelHandle] that belongs to one input channel or result subpartition.
type Channel struct {
	// Group is the index of the input gate, or of the result partition.
	Group int32
	// Index of the channel in the gate, or of the subpartition in the partition.
	Index int32
	// Size in bytes of the data of this channel.
	Size int64
	// Offsets of the buffers in the bytes of the delegate.
	Offsets []int64
}

// ChannelHandle is data in flight that an unaligned checkpoint holds: of one channel, or of several that share a delegate.
// Whether channels or subpartitions are meant depends on the list of [SubtaskState] that it stands in.
type ChannelHandle struct {
	// Subtask that the data belongs to.
	Subtask int32
	// Merged handles, known from version 6 on, have any number of channels; others have exactly one.
	Merged bool
	// Size in bytes of the data of all channels. That of the delegate may be larger, as several handles share one file.
	Size int64
	// Delegate holds the bytes. It is not nil.
	Delegate core.StreamHandle
	Channels []Channel
}

// NewChannelHandle returns a handle for one channel.
func NewChannelHandle(subtask int32, channel Channel, delegate core.StreamHandle) ChannelHandle {
	return ChannelHandle{Subtask: subtask, Size: channel.Size, Delegate: delegate, Channels: []Channel{channel}}
}

// NewMergedChannelHandle returns a merged handle; its size is the sum of those of the channels.
func NewMergedChannelHandle(subtask int32, channels []Channel, delegate core.StreamHandle) ChannelHandle {
	h := ChannelHandle{Subtask: subtask, Merged: true, Delegate: delegate, Channels: channels}
	for i := range channels {
		h.Size += channels[i].Size
	}
	return h
}
