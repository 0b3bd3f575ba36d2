package metadata

import (
	"encoding/binary"
	"math"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// The annex is what this project adds to file handles and Flink's format has no room for. It refers to a handle by its
// number: how many handles of type file, relative file or segment stand before it in the body. As the body is under a
// checksum of its own, numbers and body belong together.
//
//	sums   i32 n, n × (i32 chunk size, i32 k, k × u32 CRC32C)
//	refs   i32 n, n × (u32 number of the handle, i32 index into sums)       ascending by number
//
// Handles that share their Checksums share an entry of sums if few others stand between them: entries stand in the order in
// which handles first refer to them, and a later reference is to one of the last eight then.

const (
	minSums    = 4 + 4
	sizeRef    = 4 + 4
	recentSums = 8
)

type annexRef struct {
	handle uint32
	index  uint32
}

// annexReader gives what is recorded to the handles, in the order in which they are met.
type annexReader struct {
	// stream is not nil if the annex is not in memory: then the other fields but next are empty.
	stream *annexStream
	sums   []core.Checksums
	refs   []byte // sizeRef bytes each, checked for order and range
	dirs   []string
	// dirRefs are like refs: the directory of each relative handle. Only task snapshots have them.
	dirRefs []byte
	next    uint32 // number of the next handle
}

func (a *annexReader) read(p *parser) {
	n := p.length(minSums)
	if n > 0 {
		a.sums = make([]core.Checksums, n)
	}
	p.reserved += n * minSums
	for i := range a.sums {
		p.reserved -= minSums
		at := p.pos()
		size := p.i32()
		if size <= 0 {
			p.fail(corrupt(at, "a chunk has %d bytes", size))
		}
		a.sums[i].ChunkSize = int(size)
		a.sums[i].Sums = p.slabs.sums.take(p.length(4))
		for k := range a.sums[i].Sums {
			a.sums[i].Sums[k] = uint32(p.i32())
		}
		if p.failedAt("checksums", i) {
			return
		}
	}
	at := p.pos()
	a.refs = p.refs(len(a.sums))
	order := sumsOrder{}
	for b := a.refs; len(b) > 0; b = b[sizeRef:] {
		if ref := refAt(b); !order.follows(ref.index) {
			p.fail(corrupt(at, "a reference from handle %d to entry %d is out of order", ref.handle, ref.index))
			break
		}
	}
	p.failedIn("checksums")
}

// sumsOrder is the number of entries of sums that references have been to. A reference is to the entry behind those, or to
// one of the last few of them, so that a reader need not hold them all.
type sumsOrder struct{ seen uint32 }

func (o *sumsOrder) follows(index uint32) bool {
	switch {
	case index == o.seen:
		o.seen++
	case index > o.seen || o.seen-index > recentSums:
		return false
	}
	return true
}

func (a *annexReader) readDirs(p *parser) {
	n := p.length(2)
	if n > 0 {
		a.dirs = make([]string, n)
	}
	p.reserved += n * 2
	for i := range a.dirs {
		p.reserved -= 2
		a.dirs[i] = p.text()
	}
	a.dirRefs = p.refs(len(a.dirs))
	p.failedIn("directories")
}

// refs reads a list of references and returns their bytes.
func (p *parser) refs(targets int) []byte {
	n := p.length(sizeRef)
	at := p.pos()
	list := p.bytes(n * sizeRef)
	next := int64(0)
	for b := list; len(b) > 0; b = b[sizeRef:] {
		ref := refAt(b)
		if int64(ref.handle) < next || int64(ref.index) >= int64(targets) {
			p.fail(corrupt(at, "a reference from handle %d to entry %d is out of order or range", ref.handle, ref.index))
			return nil
		}
		next = int64(ref.handle) + 1
	}
	return list
}

func refAt(b []byte) annexRef {
	return annexRef{handle: binary.BigEndian.Uint32(b), index: binary.BigEndian.Uint32(b[4:])}
}

// lookUp returns the entry for the handle with the given number if the first reference is to it, and drops that reference.
func lookUp(refs *[]byte, handle uint32) (uint32, bool) {
	if len(*refs) == 0 {
		return 0, false
	}
	ref := refAt(*refs)
	if ref.handle != handle {
		return 0, false
	}
	*refs = (*refs)[sizeRef:]
	return ref.index, true
}

// annotate counts a file handle and gives it the checksums that are recorded for it.
func (p *parser) annotate(sums **core.Checksums, size int64) {
	number := p.annex.next
	p.annex.next++
	if p.annex.stream != nil {
		*sums = p.annex.stream.lookUp(p, number)
	} else if index, ok := lookUp(&p.annex.refs, number); ok {
		*sums = &p.annex.sums[index]
	}
	if *sums != nil && p.err == nil && !fitChecksums(*sums, size) {
		p.fail(corrupt(p.pos(), "%d checksums of chunks of %d bytes are recorded for %d bytes", len((*sums).Sums), (*sums).ChunkSize, size))
	}
}

func (p *parser) annotateRelative(h *core.RelativeFileHandle) {
	if index, ok := lookUp(&p.annex.dirRefs, p.annex.next); ok {
		h.Dir = p.annex.dirs[index]
	}
	p.annotate(&h.Checksums, h.Size)
}

// done reports whether every reference met its handle.
func (a *annexReader) done() bool {
	return len(a.refs) == 0 && len(a.dirRefs) == 0 && (a.stream == nil || a.stream.left == 0)
}

// fitChecksums reports whether there are as many sums as size bytes have chunks. A size that is not known fits.
func fitChecksums(c *core.Checksums, size int64) bool {
	if c.ChunkSize <= 0 || c.ChunkSize > math.MaxInt32 {
		return false
	}
	if size < 0 {
		return true
	}
	chunk := int64(c.ChunkSize)
	return int64(len(c.Sums)) == size/chunk+min(size%chunk, 1)
}

// annexWriter collects what is to be added while the handles are written.
type annexWriter struct {
	sums    []*core.Checksums
	refs    []annexRef
	dirs    []string
	dirRefs []annexRef
	next    uint32

	dirIndex map[string]uint32
}

func (a *annexWriter) file(sums *core.Checksums) {
	if sums != nil {
		a.refs = append(a.refs, annexRef{a.next, a.entry(sums)})
	}
	a.next++
}

// entry returns the index of the entry for sums. It looks at the last entries only: handles that share a file stand together,
// and a map of all of them would cost more than everything else about a handle.
func (a *annexWriter) entry(sums *core.Checksums) uint32 {
	for i := len(a.sums) - 1; i >= max(0, len(a.sums)-recentSums); i-- {
		if a.sums[i] == sums {
			return uint32(i)
		}
	}
	a.sums = append(a.sums, sums)
	return uint32(len(a.sums) - 1)
}

// dir is called for a relative handle before file.
func (a *annexWriter) dir(dir string) {
	if dir == "" {
		return
	}
	index, known := a.dirIndex[dir]
	if !known {
		index = uint32(len(a.dirs))
		a.dirs = append(a.dirs, dir)
		if a.dirIndex == nil {
			a.dirIndex = make(map[string]uint32)
		}
		a.dirIndex[dir] = index
	}
	a.dirRefs = append(a.dirRefs, annexRef{a.next, index})
}

func (a *annexWriter) append(e *encoder) {
	e.i32(len(a.sums))
	for _, s := range a.sums {
		e.i32(s.ChunkSize)
		e.i32(len(s.Sums))
		for _, sum := range s.Sums {
			e.u32(sum)
		}
		e.spill()
	}
	e.refs(a.refs)
}

func (a *annexWriter) appendDirs(e *encoder) {
	e.i32(len(a.dirs))
	for _, dir := range a.dirs {
		e.text(dir)
	}
	e.refs(a.dirRefs)
}

func (e *encoder) refs(refs []annexRef) {
	e.i32(len(refs))
	for _, ref := range refs {
		e.u32(ref.handle)
		e.u32(ref.index)
		e.spill()
	}
}
