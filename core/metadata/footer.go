package metadata

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// The footer stands behind the body. Flink reads the body only and never looks at what follows.
//
//	offset
//	0     8 bytes  magic  89 'H' 'C' 'F' 0D 0A 1A 0A
//	8     i32      version of the footer, 1
//	12    i32      length of the footer in bytes, from the magic to the last byte
//	16    u32      CRC32C of all bytes of the file before the magic
//	20    i64      creation time in milliseconds since 1970, UTC
//	28    u8       kind: 0 unknown, 1 checkpoint, 2 savepoint
//	29    u8       durability: 0 not recorded, 1 unsynced, 2 replicated, 3 synced
//	30    i32 n    n × (i32 position of the operator, utf name, utf uid)
//	               only below version 5 of the body, ascending, only operators that have a name or uid
//	…     annex    checksums of files, see annex.go
//	-8    u32      CRC32C of the footer up to here
//	-4    i32      length of the footer again
//
// Magic, version, both lengths and both checksums stay where they are in all versions of the footer.
const (
	footerMagic   = "\x89HCF\r\n\x1a\n"
	footerVersion = 1
	footerHead    = len(footerMagic) + 4 + 4
	footerTail    = 4 + 4
	minFooter     = footerHead + 4 + 8 + 1 + 1 + 4 + 4 + 4 + footerTail
	minNames      = 4 + 2 + 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Kind says why a checkpoint was taken.
type Kind uint8

// The kinds, with the numbers that the footer gives them.
const (
	KindUnknown    Kind = 0
	KindCheckpoint Kind = 1
	KindSavepoint  Kind = 2
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	switch k {
	case KindUnknown:
		return "unknown"
	case KindCheckpoint:
		return "checkpoint"
	case KindSavepoint:
		return "savepoint"
	}
	return "invalid"
}

// Footer is what this project records about a checkpoint beside what Flink does. In the file it also holds the checksums of
// state files, which Parse puts into the handles, and below version 5 the names of the operators.
type Footer struct {
	// Created is kept to the millisecond.
	Created time.Time
	Kind    Kind
	// Durability of the state files; DurabilityDefault if it was not recorded.
	Durability core.Durability
}

// rawFooter is a footer whose frame and checksums are right.
type rawFooter struct {
	offset int // in the file
	reader annexReader
	body   uint32      // recorded sum of the body, where that is compared later
	place  *annexPlace // of an annex that is not in memory
	footer Footer
	names  []operatorNames
}

type operatorNames struct {
	operator  int
	name, uid string
}

// annex returns a reader at its beginning. A nil footer has nothing to add.
func (f *rawFooter) annex() annexReader {
	switch {
	case f == nil:
		return annexReader{}
	case f.place != nil:
		return annexReader{stream: f.place.open()}
	}
	return f.reader
}

// splitFooter cuts the footer off the file, if there is one, and checks both checksums. Whether the body ends where the
// footer begins is for the parser to find out.
func splitFooter(data []byte) (body []byte, f *rawFooter, err *Error) {
	if len(data) < headerLength+minFooter {
		return data, nil, nil
	}
	length := int64(binary.BigEndian.Uint32(data[len(data)-4:]))
	if length < int64(minFooter) || length > int64(len(data)-headerLength) {
		return data, nil, nil
	}
	offset := len(data) - int(length)
	foot := data[offset:]
	if string(foot[:len(footerMagic)]) != footerMagic {
		return data, nil, nil
	}
	if again := binary.BigEndian.Uint32(foot[len(footerMagic)+4:]); int64(again) != length {
		return nil, nil, corrupt(offset+len(footerMagic)+4, "the lengths at its ends differ: %d and %d", again, length)
	}
	end := len(foot) - footerTail
	if sum := core.CRC32C(foot[:end]); sum != binary.BigEndian.Uint32(foot[end:]) {
		return nil, nil, corrupt(offset, "its checksum is wrong")
	}
	if version := int32(binary.BigEndian.Uint32(foot[len(footerMagic):])); version != footerVersion {
		return nil, nil, unsupported(offset+len(footerMagic), "version %d of the footer", version)
	}
	body = data[:offset]
	if sum := core.CRC32C(body); sum != binary.BigEndian.Uint32(foot[footerHead:]) {
		return nil, nil, corrupt(offset, "the checksum of the body is wrong")
	}
	f = &rawFooter{offset: offset}
	if err := f.parse(data[:len(data)-footerTail]); err != nil {
		return nil, nil, err
	}
	return body, f, nil
}

// parse reads what is inside of the frame; data ends where the tail begins.
func (f *rawFooter) parse(data []byte) *Error {
	return f.content(&parser{cursor: cursor{data: data, off: f.offset + footerHead + 4}})
}

// content reads what follows the checksum of the body.
func (f *rawFooter) content(p *parser) *Error {
	f.footer.Created = time.UnixMilli(p.i64()).UTC()
	at := p.pos()
	kind, durability := p.u8(), p.u8()
	if kind > byte(KindSavepoint) || durability > byte(core.Synced) {
		p.fail(corrupt(at, "there is no kind %d or no durability %d", kind, durability))
	}
	f.footer.Kind, f.footer.Durability = Kind(kind), core.Durability(durability)
	f.parseNames(p)
	if p.err == nil {
		f.readAnnex(p)
	}
	if p.err == nil && p.rest() > 0 {
		p.fail(corrupt(p.pos(), "%d bytes are left over", p.rest()))
	}
	return p.err
}

// readAnnex keeps the annex in memory, or only where it is.
func (f *rawFooter) readAnnex(p *parser) {
	if p.from == nil {
		f.reader.read(p)
		return
	}
	f.place = findAnnex(p)
}

func (f *rawFooter) parseNames(p *parser) {
	n := p.length(minNames)
	if n > 0 {
		f.names = make([]operatorNames, n)
	}
	p.reserved += n * minNames
	next := 0
	for i := range f.names {
		p.reserved -= minNames
		at := p.pos()
		f.names[i] = operatorNames{operator: int(p.i32()), name: p.text(), uid: p.text()}
		if f.names[i].operator < next {
			p.fail(corrupt(at, "operator %d is out of order", f.names[i].operator))
		}
		next = f.names[i].operator + 1
		if p.failedAt("names", i) {
			return
		}
	}
	p.failedIn("names")
}

// footer gives the checkpoint what the footer says, after the body was read.
func (p *parser) footer(c *Checkpoint, f *rawFooter) {
	if f == nil {
		return
	}
	if !p.annex.done() {
		p.fail(corrupt(f.offset, "checksums refer to more than the %d files of the checkpoint", p.annex.next))
	}
	operators := len(c.Operators)
	if p.scan != nil {
		operators = p.scan.operators
	}
	for i, n := range f.names {
		if n.operator >= operators || p.version >= firstWithNames {
			p.fail(corrupt(f.offset, "there is no operator %d to be named", n.operator))
			p.failedAt("names", i)
			break
		}
		if p.scan == nil {
			c.Operators[n.operator].Name, c.Operators[n.operator].UID = n.name, n.uid
		}
	}
	if p.failedIn("footer") {
		return
	}
	footer := f.footer
	c.Footer = &footer
}

// trailingBytes is the error for bytes behind the body of a file whose end is not a footer.
func trailingBytes(rest []byte, off, n int) *Error {
	if len(rest) >= 4 && bytes.HasPrefix([]byte(footerMagic), rest[:min(len(rest), len(footerMagic))]) {
		e := corrupt(off, "it is cut off or damaged")
		e.in("footer")
		return e
	}
	return corrupt(off, "%d bytes behind the end", n)
}
