package metadata

import (
	"io"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// annexPlace is where in a file the two lists of an annex are.
type annexPlace struct {
	src        io.ReaderAt
	sums, refs int64 // of the first element of each
	end        int64
	entries    int
	handles    int
}

// findAnnex goes over an annex and checks what can be checked without its handles.
func findAnnex(p *parser) *annexPlace {
	place := &annexPlace{src: p.from.src}
	place.entries = p.length(minSums)
	place.sums = int64(p.pos())
	p.reserved += place.entries * minSums
	for i := range place.entries {
		p.reserved -= minSums
		skipSums(p)
		if p.failedAt("checksums", i) {
			return place
		}
	}
	place.handles = p.length(sizeRef)
	place.refs = int64(p.pos())
	p.skip(place.handles * sizeRef)
	place.end = int64(p.pos())
	p.failedIn("checksums")
	return place
}

func skipSums(p *parser) {
	at := p.pos()
	if size := p.i32(); size <= 0 {
		p.fail(corrupt(at, "a chunk has %d bytes", size))
	}
	p.skip(4 * p.length(4))
}

// annexWindow is the window of one list of an annex: far smaller than that of the body, as little is read at a time.
const annexWindow = 128 << 10

// annexStream reads an annex along with the body: its lists are in the order of the handles.
type annexStream struct {
	refs, sums cursor
	left       int // references that were not read yet
	ahead      annexRef
	waiting    bool // ahead is the next reference
	entries    int
	order      sumsOrder
	recent     [recentSums]*core.Checksums // by index modulo
	next       int64                       // least number that the next reference may have
}

func (a *annexPlace) open() *annexStream {
	return &annexStream{
		refs: newCursor(a.src, a.refs, a.end, annexBuffer(a.end-a.refs)), left: a.handles, entries: a.entries,
		sums: newCursor(a.src, a.sums, a.refs, annexBuffer(a.refs-a.sums)),
	}
}

func annexBuffer(length int64) []byte { return make([]byte, min(length, annexWindow)) }

// lookUp returns what is recorded for the handle with the given number, nil if nothing is. A failure is that of p.
func (a *annexStream) lookUp(p *parser, handle uint32) *core.Checksums {
	if a.left == 0 {
		return nil
	}
	if !a.waiting {
		a.ahead, a.waiting = annexRef{handle: uint32(a.refs.i32()), index: uint32(a.refs.i32())}, true
		if !a.valid(p) {
			return nil
		}
	}
	if a.ahead.handle != handle {
		return nil
	}
	a.waiting = false
	a.left--
	return a.recent[a.ahead.index%recentSums]
}

// valid checks a new reference, and reads the entry that it refers to unless that was read.
func (a *annexStream) valid(p *parser) bool {
	at := a.refs.pos()
	before := a.order.seen
	switch {
	case a.refs.err != nil:
	case int64(a.ahead.handle) < a.next || int(a.ahead.index) >= a.entries || !a.order.follows(a.ahead.index):
		p.fail(corrupt(at, "a reference from handle %d to entry %d is out of order or range", a.ahead.handle, a.ahead.index))
	case a.order.seen != before:
		a.recent[a.ahead.index%recentSums] = a.readSums()
	}
	a.next = int64(a.ahead.handle) + 1
	for _, c := range [...]*cursor{&a.refs, &a.sums} {
		if c.err != nil {
			p.fail(c.err)
			if p.from.err == nil {
				p.from.err = c.from.err
			}
		}
	}
	return p.err == nil
}

func (a *annexStream) readSums() *core.Checksums {
	c := &core.Checksums{ChunkSize: int(a.sums.i32())}
	n := a.sums.length(4)
	if n > 0 {
		c.Sums = make([]uint32, n)
	}
	for i := range c.Sums {
		c.Sums[i] = uint32(a.sums.i32())
	}
	return c
}
