package ordered

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

const (
	// spanCalls is how many calls a goroutine sorts and builds at once, at least: each span ends with a leaf that may not be
	// full.
	spanCalls = 16 << 10
	// smallSort is the length up to which comparing is faster than counting, tinySort that up to which insertion is faster than
	// what compares less.
	smallSort = 64
	tinySort  = 32
)

// arrange divides the calls into spans, all keys of one below those of the next, in an order within that build mends. Calls
// for one key stay together.
func (l *Loader) arrange(workers int) [][]call {
	calls := l.calls
	if len(calls) == 0 {
		return nil
	}
	chunks := max(1, min(workers*4, len(calls)/spanCalls))
	part := func(i int) []call { return calls[i*len(calls)/chunks : (i+1)*len(calls)/chunks] }
	if !l.unsorted {
		spans := make([][]call, chunks)
		for i := range spans {
			spans[i] = part(i)
		}
		return spans
	}
	counts := make([][257]int, chunks)
	parallel(workers, chunks, func(i int) {
		if l.stopped() {
			return
		}
		for j, c := range part(i) {
			head := l.head(c)
			part(i)[j].head = head
			counts[i][head>>56+1]++
		}
	})
	at := 0
	var ends [256]int
	for b := range 256 {
		for i := range counts {
			at, counts[i][b] = at+counts[i][b+1], at
		}
		ends[b] = at
	}
	sorted := make([]call, len(calls))
	parallel(workers, chunks, func(i int) {
		if l.stopped() {
			return
		}
		for _, c := range part(i) {
			b := c.head >> 56
			sorted[counts[i][b]] = c
			counts[i][b]++
		}
	})
	l.calls = sorted
	var spans [][]call
	from := 0
	for _, end := range ends {
		if end-from >= spanCalls || end == len(sorted) && end > from {
			spans = append(spans, sorted[from:end])
			from = end
		}
	}
	return spans
}

// head returns the eight bytes of a call's key behind the common prefix.
func (l *Loader) head(c call) uint64 {
	key := l.keyAt(c)
	if key = key[l.prefix:]; len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// sort sorts calls by key, those of one key in their order.
func (l *Loader) sort(calls []call) {
	l.radix(calls, make([]call, len(calls)), 56)
}

// radix sorts calls whose heads are equal above the byte at shift.
func (l *Loader) radix(calls, spare []call, shift int) {
	if len(calls) <= tinySort {
		l.insertion(calls)
		return
	}
	if len(calls) <= smallSort || shift < 0 {
		slices.SortFunc(calls, l.compare)
		return
	}
	if l.stopped() {
		return
	}
	var counts [257]int
	for _, c := range calls {
		counts[int(byte(c.head>>shift))+1]++
	}
	for i := range 256 {
		counts[i+1] += counts[i]
	}
	starts := counts
	for _, c := range calls {
		b := byte(c.head >> shift)
		spare[starts[b]] = c
		starts[b]++
	}
	copy(calls, spare)
	for b := range 256 {
		if from, to := counts[b], counts[b+1]; to-from > 1 {
			l.radix(calls[from:to], spare[from:to], shift-8)
		}
	}
}

func (l *Loader) insertion(calls []call) {
	for i := 1; i < len(calls); i++ {
		c, at := calls[i], i
		for at > 0 && (calls[at-1].head > c.head || calls[at-1].head == c.head && l.compare(calls[at-1], c) > 0) {
			calls[at] = calls[at-1]
			at--
		}
		calls[at] = c
	}
}

func (l *Loader) compare(a, b call) int {
	if a.head != b.head {
		return cmp.Compare(a.head, b.head)
	}
	x, y := l.keyAt(a), l.keyAt(b)
	if c := bytes.Compare(x[l.prefix:], y[l.prefix:]); c != 0 {
		return c
	}
	if a.chunk != b.chunk {
		return cmp.Compare(a.chunk, b.chunk)
	}
	return cmp.Compare(a.off, b.off)
}

func (l *Loader) sameKey(a, b call) bool {
	if a.head != b.head {
		return false
	}
	x, y := l.keyAt(a), l.keyAt(b)
	return bytes.Equal(x, y)
}
