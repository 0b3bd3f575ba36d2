// Package socket makes system calls on the sockets of plain TCP connections, past the netpoller's own: reads and writes of several
// slices, and how many bytes wake a reader.
//
// The sockets do not block, so the scheduler of Go is not told of the calls. It would pay for knowing: a call wakes the scheduler's
// watch if the process was idle just before, as it mostly was when a packet comes, and the watch then looks every 20 µs whether
// somebody needs the processor. In a stream of blocks that costs a third of the processor time that the stream needs.
package socket
