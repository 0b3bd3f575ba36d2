package ordered

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
)

// Loader makes a version out of puts and removals in any order, of which the last for a key wins. It is for one goroutine.
// Until Map has returned it holds everything that it was given, and 16 to 32 bytes more for each call.
type Loader struct {
	// Parallelism is how many goroutines Map uses. 0 and 1 are none but the caller's.
	Parallelism int
	// Stop is asked by Map now and then, by any of its goroutines. Once it has returned true it must go on doing so; Map then
	// returns nil soon. Nil never stops.
	Stop func() bool

	chunks   []chunk
	room     int // in the last chunk; 0 if that is not ours
	calls    []call
	prefix   int // what all keys have in common at their begin
	first    []byte
	last     []byte
	unsorted bool
	touched  atomic.Uint32 // keeps the compiler from leaving touch out
}

// chunk is memory with calls, each as Spark's state store writes it. Integers are big-endian.
//
//	offset  size  content
//	0       4     length of the key
//	4       …     key
//	…       4     skip + length of the value; negative for a removal
//	…       skip  bytes without a meaning here
//	…       …     value, of which what is beyond a multiple of floor does not count
type chunk struct {
	bytes []byte
	skip  int
	floor int
}

// call is a put or a removal: its place in a chunk, which ascends with the calls.
type call struct {
	head       uint64 // the beginning of the key behind the common prefix
	chunk, off uint32
}

const (
	callHeader = 8
	// loadChunk is the size of a chunk of small calls; every large one has a chunk of its own.
	loadChunk = 1 << 20
)

// Put sets the value of key. It copies both.
func (l *Loader) Put(key, value []byte) { copy(l.add(key, len(value), int32(len(value))), value) }

// Remove removes key.
func (l *Loader) Remove(key []byte) { l.add(key, 0, -1) }

// PutShared puts entries that lie in content at offsets, each as
//
//	int32 keyLen │ key │ int32 valueLen │ skip bytes │ value
//
// with big-endian integers, valueLen including skip, and the value ending at a multiple of floor. All must be complete.
// It keeps content, which must not change any more, until Map has returned.
func (l *Loader) PutShared(content []byte, offsets []uint32, skip, floor int) {
	n := uint32(len(l.chunks))
	l.chunks = append(l.chunks, chunk{content, skip, floor})
	l.room = 0
	if len(l.calls)+len(offsets) > cap(l.calls) {
		l.calls = slices.Grow(l.calls, max(len(offsets), len(l.calls)))
	}
	for _, off := range offsets {
		rest := content[off:]
		l.note(rest[4:][:binary.BigEndian.Uint32(rest)])
		l.calls = append(l.calls, call{chunk: n, off: off})
	}
}

// add stores a call, and returns the place of its value.
func (l *Loader) add(key []byte, size int, mark int32) []byte {
	need := callHeader + len(key) + size
	if need > l.room {
		l.room = max(need, loadChunk)
		l.chunks = append(l.chunks, chunk{make([]byte, 0, l.room), 0, 1})
	}
	l.room -= need
	c := &l.chunks[len(l.chunks)-1]
	at := len(c.bytes)
	c.bytes = binary.BigEndian.AppendUint32(c.bytes, uint32(len(key)))
	c.bytes = append(c.bytes, key...)
	l.note(c.bytes[at+4:])
	c.bytes = binary.BigEndian.AppendUint32(c.bytes, uint32(mark))
	c.bytes = c.bytes[:at+need]
	l.calls = append(l.calls, call{chunk: uint32(len(l.chunks) - 1), off: uint32(at)})
	return c.bytes[at+need-size:]
}

// note looks at the key of the next call.
func (l *Loader) note(key []byte) {
	if len(l.calls) == 0 {
		l.first, l.prefix = key, len(key)
	} else {
		if l.prefix > 0 && !bytes.HasPrefix(key, l.first[:l.prefix]) {
			l.prefix = commonPrefix(l.first[:l.prefix], key)
		}
		l.unsorted = l.unsorted || bytes.Compare(l.last, key) >= 0
	}
	l.last = key
}

// at returns the key of a call, and its value or whether it is a removal.
func (l *Loader) at(c call) (key, value []byte, removed bool) {
	ch := &l.chunks[c.chunk]
	b := ch.bytes[c.off:]
	n := 4 + binary.BigEndian.Uint32(b)
	key = b[4:n:n]
	b = b[n:]
	size := int32(binary.BigEndian.Uint32(b))
	if size < 0 {
		return key, nil, true
	}
	value = b[4+ch.skip:][:int(size)-ch.skip]
	return key, value[:len(value)&^(ch.floor-1)], false
}

// keyAt returns the key of a call.
func (l *Loader) keyAt(c call) []byte {
	b := l.chunks[c.chunk].bytes[c.off:]
	return b[4:][:binary.BigEndian.Uint32(b)]
}

func (l *Loader) stopped() bool { return l.Stop != nil && l.Stop() }

// Map returns the version, or nil if it was stopped, and empties the loader.
func (l *Loader) Map() *Map {
	workers := max(1, l.Parallelism)
	spans := l.arrange(workers)
	built := make([]span, len(spans))
	birth := stamps.Add(1)
	parallel(workers, len(spans), func(i int) { built[i] = l.build(spans[i], birth) })
	var (
		t      tree
		leaves []*node
	)
	for _, s := range built {
		leaves = append(leaves, s.leaves...)
		t.count += s.count
		t.data += s.data
		t.memory += s.memory
	}
	l.chunks, l.room, l.calls, l.first, l.last, l.unsorted = nil, 0, nil, nil, nil, false
	if l.stopped() {
		return nil
	}
	return finish(leaves, t, birth)
}

// span is a part of the map.
type span struct {
	leaves []*node
	count  int
	data   int64
	memory int64
}

// build makes the leaves of calls, which it sorts first.
func (l *Loader) build(calls []call, birth uint64) span {
	if l.unsorted {
		l.sort(calls)
	}
	var (
		s       span
		pending [fillEntries]item
		n       int
	)
	emit := func(all bool) {
		fit := fitting(pending[:n], all)
		leaf, size := newLeaf(pending[:fit.count], fit, birth)
		s.leaves = append(s.leaves, leaf)
		s.memory += int64(size)
		n = copy(pending[:], pending[fit.count:n])
	}
	for i, c := range calls {
		if i%ahead == 0 {
			if l.stopped() {
				return s
			}
			if l.unsorted {
				l.touch(calls[i:min(i+ahead, len(calls))])
			}
		}
		key, value, removed := l.at(c)
		if removed || l.unsorted && i+1 < len(calls) && l.sameKey(c, calls[i+1]) {
			continue
		}
		pending[n] = item{key: key, value: value}
		if len(value) > packMax {
			pending[n].ref = newValue(value)
		}
		n++
		s.count++
		s.data += int64(len(key) + len(value))
		if n == fillEntries {
			emit(false)
		}
	}
	for n > 0 {
		emit(true)
	}
	return s
}

// ahead is how many calls are touched before they are used.
const ahead = 32

// touch brings calls, which lie anywhere in memory, into the cache: many at a time, where using one after the other would
// wait for each.
func (l *Loader) touch(calls []call) {
	var sum byte
	for _, c := range calls {
		b := l.chunks[c.chunk].bytes[c.off:]
		sum += b[0] + b[min(64, len(b)-1)] + b[min(128, len(b)-1)]
	}
	l.touched.Store(uint32(sum))
}

// parallel calls do for 0 … n-1 in up to workers goroutines and waits for them.
func parallel(workers, n int, do func(i int)) {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var group sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range workers {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	group.Wait()
}
