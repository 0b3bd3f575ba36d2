package blockread

// A node that is slower than its reader would wake it for each piece that it sends: the head of a packet and its data go apart. In
// a long stream the reader is woken when more has come (SO_RCVLOWAT). It must never wait for more than is still to come, nor for
// more than the receive buffer has room for: the node would wait too. Which level is right is decided when there is nothing left
// to read, and a wait is to begin.
const (
	// lowWater is the level where the receive buffer has grown, as it does for a fast node.
	lowWater = 512 << 10
	// lowWaterFirst is the level before that. The smallest buffers that systems begin with have room for it.
	lowWaterFirst = 16 << 10
	// bufferShare is how many times the level the receive buffer must be. The kernel counts what bytes occupy, which is a
	// multiple of their number where packets are small.
	bufferShare = 6
)

// levelFor is the level for a wait, with owed bytes to come at least and a receive buffer of the given size; 1 is any byte.
func levelFor(owed int64, buffer int) int {
	level := 1
	for _, higher := range [...]int{lowWaterFirst, lowWater} {
		if owed >= int64(higher) && buffer/bufferShare >= higher {
			level = higher
		}
	}
	return level
}
