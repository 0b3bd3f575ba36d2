package statestore

import "github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"

// waitingBytes is how many bytes of keys and values wait at most, and the largest change that does.
const waitingBytes = 16 << 10

// changes are puts and removals that wait until there are some: in a large state each has to wait for memory, and together
// they wait once.
type changes struct {
	list []change
	keys [][]byte
	data []byte // of keys and values
}

type change struct {
	key, value []byte
	removed    bool
}

// add copies a change, and reports whether it is time to apply.
func (c *changes) add(key, value []byte, removed bool) (enough bool) {
	c.list = append(c.list, change{c.hold(key), c.hold(value), removed})
	return len(c.list) == ordered.Ahead || len(c.data) >= waitingBytes
}

func (c *changes) hold(p []byte) []byte {
	at := len(c.data)
	c.data = append(c.data, p...) // where it grows, what was held before stays where it is
	return c.data[at:len(c.data):len(c.data)]
}

func (c *changes) bytes() int64 { return int64(len(c.data)) }

// apply makes the changes in their order.
func (c *changes) apply(e *ordered.Editor) {
	if len(c.list) > 1 {
		c.keys = c.keys[:0]
		for i := range c.list {
			c.keys = append(c.keys, c.list[i].key)
		}
		e.Touch(c.keys)
	}
	for i := range c.list {
		if w := &c.list[i]; w.removed {
			e.Remove(w.key)
		} else {
			e.Put(w.key, w.value)
		}
	}
	c.list, c.data = c.list[:0], c.data[:0]
}
