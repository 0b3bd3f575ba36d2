package metadata

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Visitor is told what [Scan] reads, in the order of the file. Functions that are nil are not called. An error of one ends the
// scan, which returns it. What a visitor is given, and all that hangs on it but strings and Checksums, is used again after it has
// returned: what it wants to keep it copies.
type Visitor struct {
	// Operator is called with the number of each operator, counted from 0, before its subtasks; those are not in o.
	Operator func(number int, o *OperatorState) error
	// Subtask is called for each subtask of the operator that was visited last.
	Subtask func(s *Subtask) error
}

// Scan reads a `_metadata` file of size bytes as [Parse] does, without ever holding more of it than one subtask and some
// hundred KiB. The checkpoint that it returns has everything but its operators, which are visited.
//
// The error is that of Parse for the same bytes, or that of src, or that of the visitor. Only at the end it is known that a file
// is right as a whole: what was visited counts for nothing if there is an error. src is read once, its footer twice, and files
// of version 3 as many times as there are layouts to be tried.
func Scan(src io.ReaderAt, size int64, dir string, visit Visitor) (*Checkpoint, error) {
	s := &scan{src: src, size: size, end: size, dir: dir, buf: make([]byte, min(windowBytes, max(size, 64)))}
	return s.run(visit)
}

func (s *scan) run(visit Visitor) (*Checkpoint, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	layout := historicLayout{}
	if s.version == 3 {
		var err error
		if layout, err = s.chooseLayout(); err != nil {
			return nil, err
		}
	}
	s.visit = visit
	c, _, err := s.pass(layout)
	return c, err
}

// scan is a file that is read piece by piece.
type scan struct {
	src     io.ReaderAt
	size    int64
	dir     string
	version int
	headSum uint32 // of the header, which no window is over
	foot    *rawFooter
	end     int64 // of the body
	buf     []byte

	visit      Visitor
	visitorErr error
	// number is that of the operator that is read, operators how many there are.
	number, operators int
}

// open reads the header and the footer.
func (s *scan) open() error {
	head := make([]byte, min(s.size, headerLength))
	if err := readFull(s.src, head, 0); err != nil {
		return err
	}
	version, problem := parseHeader(head)
	if problem != nil {
		return problem
	}
	s.version, s.headSum = version, core.CRC32C(head)
	return s.openFooter()
}

// openFooter finds the footer, if there is one, and checks its frame and checksum. That of the body is compared when the body
// has been read.
func (s *scan) openFooter() error {
	offset, err := s.findFooter()
	if err != nil || offset < 0 {
		return err
	}
	length := s.size - offset
	p := &parser{cursor: newCursor(s.src, offset, s.size-int64(footerTail), s.buf)}
	f := &rawFooter{offset: int(offset)}
	p.bytes(len(footerMagic))
	footVersion, again := p.i32(), p.i32()
	f.body = uint32(p.i32())
	var problem *Error
	if p.err == nil && footVersion == footerVersion && int64(again) == length {
		problem = f.content(p)
	}
	sum, err := p.from.drain(s.size - int64(footerTail))
	if err != nil {
		return err
	}
	tail := make([]byte, footerTail)
	if err := readFull(s.src, tail, s.size-int64(footerTail)); err != nil {
		return err
	}
	switch {
	case int64(again) != length:
		problem = corrupt(int(offset)+len(footerMagic)+4, "the lengths at its ends differ: %d and %d", again, length)
	case sum != binary.BigEndian.Uint32(tail):
		problem = corrupt(int(offset), "its checksum is wrong")
	case footVersion != footerVersion:
		problem = unsupported(int(offset)+len(footerMagic), "version %d of the footer", footVersion)
	}
	if problem != nil {
		problem.in("footer")
		return problem
	}
	s.foot, s.end = f, offset
	return nil
}

// findFooter returns where the footer begins, -1 if there is none.
func (s *scan) findFooter() (int64, error) {
	if s.size < int64(headerLength+minFooter) {
		return -1, nil
	}
	tail := make([]byte, 4)
	if err := readFull(s.src, tail, s.size-4); err != nil {
		return -1, err
	}
	length := int64(binary.BigEndian.Uint32(tail))
	if length < int64(minFooter) || length > s.size-headerLength {
		return -1, nil
	}
	magic := make([]byte, len(footerMagic))
	if err := readFull(s.src, magic, s.size-length); err != nil || string(magic) != footerMagic {
		return -1, err
	}
	return s.size - length, nil
}

// chooseLayout finds the layout of a file of version 3 by reading it as Parse does.
func (s *scan) chooseLayout() (historicLayout, error) {
	_, first, err := s.pass(historicLayout{})
	if err == nil || first.from.err != nil {
		return historicLayout{}, err
	}
	var fit []historicLayout
	for _, layout := range first.candidates() {
		switch _, p, again := s.pass(layout); {
		case again == nil:
			fit = append(fit, layout)
		case p.from.err != nil:
			return historicLayout{}, again
		}
	}
	if len(fit) != 1 {
		return historicLayout{}, err
	}
	return fit[0], nil
}

// pass reads the body once.
func (s *scan) pass(layout historicLayout) (*Checkpoint, *parser, error) {
	p := newParser(nil, s.dir, s.version)
	p.slabs.each(restartable.keepChunks)
	p.cursor = newCursor(s.src, headerLength, s.end, s.buf)
	p.from.crc = s.headSum
	p.scan, p.historicLayout = s, layout
	p.annex = s.foot.annex()
	c := p.file(s.foot)
	switch {
	case s.visitorErr != nil:
		return nil, p, s.visitorErr
	case p.from.err != nil:
		return nil, p, p.from.err
	}
	if s.foot != nil {
		sum, err := p.from.drain(s.end)
		if err != nil {
			return nil, p, err
		}
		if sum != s.foot.body {
			e := corrupt(int(s.end), "the checksum of the body is wrong")
			e.in("footer")
			return nil, p, e
		}
	}
	if p.err != nil {
		return nil, p, p.err
	}
	return c, p, nil
}

// visitOperators reads operators one by one.
func (p *parser) visitOperators(n, size int) {
	// Master states have been read and stay; from here on memory is used again and again.
	p.slabs = slabs{}
	p.slabs.each(restartable.keepChunks)
	p.reserved += n * size
	for i := range n {
		p.reserved -= size
		p.scan.number = i
		p.slabs.each(restartable.restart)
		var o OperatorState
		p.operator(&o)
		if p.failedAt("operators", i) {
			return
		}
	}
	p.scan.operators = n
	p.failedIn("operators")
}

// visitSubtasks is called when everything else of the operator was read.
func (p *parser) visitSubtasks(o *OperatorState, n, size int) {
	if p.err != nil {
		return
	}
	p.scan.nameOperator(p, o)
	if visit := p.scan.visit.Operator; visit != nil {
		p.visited(visit(p.scan.number, o))
	}
	p.reserved += n * size
	for i := range n {
		if p.err != nil {
			break
		}
		p.reserved -= size
		p.slabs.each(restartable.restart)
		var s Subtask
		p.oneSubtask(o, &s)
		if p.failedAt("subtasks", i) {
			return
		}
		if visit := p.scan.visit.Subtask; visit != nil {
			p.visited(visit(&s))
		}
	}
	p.failedIn("subtasks")
}

// nameOperator gives an operator of a version without names what the footer has.
func (s *scan) nameOperator(p *parser, o *OperatorState) {
	if s.foot == nil || p.version >= firstWithNames {
		return
	}
	names := s.foot.names
	i, found := slices.BinarySearchFunc(names, s.number, func(n operatorNames, number int) int { return n.operator - number })
	if found {
		o.Name, o.UID = names[i].name, names[i].uid
	}
}

// visited ends the scan if a visitor says so.
func (p *parser) visited(err error) {
	if err != nil {
		p.scan.visitorErr = err
		p.fail(&Error{Offset: int64(p.pos()), Reason: "ended by the visitor", Err: errors.ErrUnsupported})
	}
}
