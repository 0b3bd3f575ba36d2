package metadata

import (
	"unicode/utf8"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// The tags of handles. Stream, operator and keyed handles share one space of numbers, channel handles have their own.
const (
	tagNone               = 0
	tagBytes              = 1
	tagFile               = 2
	tagKeyGroupsV1        = 3
	tagOperator           = 4
	tagIncrementalV1      = 5
	tagRelativeFile       = 6
	tagSavepointKeyGroups = 7
	tagChangelogV1        = 8
	tagChangelogBytes     = 9
	tagChangelogFileV1    = 10
	tagIncremental        = 11
	tagKeyGroups          = 12
	tagChangelogFile      = 13
	tagChangelog          = 14
	tagSegment            = 15
	tagEmptySegment       = 16
	tagMergedOperator     = 17

	tagInputChannel       = 1
	tagSubpartition       = 2
	tagMergedInput        = 3
	tagMergedSubpartition = 4

	// tag114 is added to the tags 8 to 10 in task snapshots, where the layout of Flink 1.14 has no version to tell it.
	tag114 = 0x80
)

const (
	minOffset          = 8
	minNamedState      = 2 + 1 + 4
	minChannel         = 4 + 4 + 4 + 4 + 8 + 1
	minChannel111      = 4 + 4 + 4 + 8 + 1
	minTaggedChannel   = 1 + 4 + 8 + 1 + 4 + 4 // merged, without channels
	minMergedChannel   = 4 + 4 + 8 + 4
	maxDepth           = 32 // of handles in handles; real files have three
	recentTexts        = 64
	shortestRemembered = 8
)

// text reads a string and remembers it for the next handles, which often have the same.
func (p *parser) text() string {
	at := p.pos()
	b := p.bytes(p.u16())
	if len(b) == 0 {
		return ""
	}
	ascii := true
	for _, c := range b {
		if c >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if !ascii {
		var ok bool
		p.scratch, ok = appendDecodedUTF8(p.scratch[:0], b)
		if !ok {
			p.fail(corrupt(at, "the text is not modified UTF-8"))
			return ""
		}
		b = p.scratch
	}
	return p.texts.take(b)
}

// name is text for what repeats: names of states and paths of files that hold the states of many.
func (p *parser) name() string {
	if !p.has(2) {
		return p.text()
	}
	n := int(p.data[p.off])<<8 | int(p.data[p.off+1])
	if n < shortestRemembered || !p.has(2+n) {
		return p.text()
	}
	b := p.data[p.off+2 : p.off+2+n]
	slot := &p.recent[(n+int(b[n-1])+7*int(b[n-2])+31*int(b[n-5]))%recentTexts]
	if *slot == string(b) {
		p.off += 2 + n
		return *slot
	}
	text := p.text()
	*slot = text
	return text
}

// path reads a qualified path. Flink has no empty ones.
func (p *parser) path() string {
	at := p.pos()
	path := p.name()
	if path == "" {
		p.fail(corrupt(at, "the path is empty"))
	}
	return path
}

// blob reads a counted run of bytes into memory of its own.
func (p *parser) blob() []byte {
	n := p.length(1)
	if n == 0 {
		return nil
	}
	own := p.slabs.blobs.take(n)
	p.copy(own)
	return own
}

func (p *parser) offsets() []int64 {
	list := p.slabs.longs.take(p.length(minOffset))
	p.longs(list)
	return list
}

// enter guards the recursion of handles in handles. Every successful call is followed by one of leave.
func (p *parser) enter() bool {
	if p.depth == maxDepth {
		p.fail(corrupt(p.pos(), "more than %d handles inside each other", maxDepth))
		return false
	}
	p.depth++
	return true
}

func (p *parser) leave() { p.depth-- }

// stream reads a stream handle, nil for none.
func (p *parser) stream() core.StreamHandle {
	at := p.pos()
	switch tag := p.u8(); tag {
	case tagNone:
		return nil
	case tagBytes:
		h := p.slabs.inline.one()
		h.Name = p.text()
		h.Data = p.blob()
		return h
	case tagFile:
		h := p.slabs.absolute.one()
		h.Size = p.size()
		h.Path = p.path()
		p.annotate(&h.Checksums, h.Size)
		return h
	case tagRelativeFile:
		h := p.slabs.relative.one()
		h.Dir = p.dir
		h.Name = p.text()
		h.Size = p.size()
		p.annotateRelative(h)
		return h
	case tagKeyGroupsV1:
		if !p.enter() {
			return nil
		}
		defer p.leave()
		h := p.slabs.keyGroups.one()
		p.keyGroupsBody(h)
		return h
	case tagSegment:
		return p.segment()
	case tagEmptySegment:
		return EmptySegment{}
	default:
		p.fail(corrupt(at, "%d is not the tag of a stream handle", tag))
		return nil
	}
}

// someStream reads a stream handle that must be there.
func (p *parser) someStream(name string) core.StreamHandle {
	if p.err != nil {
		return nil
	}
	at := p.pos()
	h := p.stream()
	if h == nil {
		p.fail(corrupt(at, "a handle is needed, there is none"))
	}
	p.failedIn(name)
	return h
}

// size reads the length of a file.
func (p *parser) size() int64 {
	at := p.pos()
	n := p.i64()
	if n < unknownSize {
		p.fail(corrupt(at, "a file of %d bytes", n))
	}
	return n
}

func (p *parser) segment() *SegmentHandle {
	h := p.slabs.segments.one()
	at := p.pos()
	h.Offset = p.i64()
	h.Size = p.i64()
	if h.Offset < 0 {
		p.fail(corrupt(at, "negative offset %d of a segment", h.Offset))
	}
	at = p.pos()
	scope := p.i32()
	if scope != int32(ScopeExclusive) && scope != int32(ScopeShared) {
		p.fail(corrupt(at, "there is no scope %d", scope))
	}
	h.Scope = Scope(scope)
	h.Path = p.path()
	h.LogicalID = p.text()
	p.annotate(&h.Checksums, h.Size)
	return h
}

// flag reads the number that says whether a handle follows.
func (p *parser) flag() bool {
	at := p.pos()
	v := p.i32()
	if v != 0 && v != 1 {
		p.fail(corrupt(at, "%d says neither that a handle follows nor that none does", v))
	}
	return v == 1
}

func (p *parser) maybeOperatorHandle() *OperatorHandle {
	if !p.flag() {
		return nil
	}
	at := p.pos()
	switch tag := p.u8(); tag {
	case tagNone:
		return nil
	case tagOperator, tagMergedOperator:
		h := p.slabs.operators.one()
		p.operatorHandle(h, tag == tagMergedOperator)
		return h
	default:
		p.fail(corrupt(at, "%d is not the tag of an operator handle", tag))
		return nil
	}
}

func (p *parser) operatorHandle(h *OperatorHandle, merging bool) {
	n := p.length(minNamedState)
	h.States = p.slabs.named.take(n)
	p.reserved += n * minNamedState
	for i := range h.States {
		p.reserved -= minNamedState
		s := &h.States[i]
		s.Name = p.name()
		at := p.pos()
		s.Mode = Mode(p.u8())
		if s.Mode > Broadcast {
			p.fail(corrupt(at, "there is no mode %d", s.Mode))
		}
		s.Offsets = p.offsets()
		if p.failedAt("states", i) {
			return
		}
	}
	if p.failedIn("states") {
		return
	}
	if merging {
		h.Merging = p.slabs.mergings.one()
		h.Merging.TaskOwnedDir = p.path()
		h.Merging.SharedDir = p.path()
		h.Merging.Empty = p.boolean()
		if p.failedIn("merging") {
			return
		}
	}
	at := p.pos()
	h.Delegate = p.someStream("delegate")
	if merging && p.err == nil && !isSegment(h.Delegate) {
		p.fail(corrupt(at, "file merging needs a segment, this is a %s", kindOfStream(h.Delegate)))
		p.failedIn("delegate")
	}
}

func isSegment(h core.StreamHandle) bool {
	switch h.(type) {
	case *SegmentHandle, EmptySegment:
		return true
	}
	return false
}
