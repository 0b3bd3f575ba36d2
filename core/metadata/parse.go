package metadata

import "encoding/binary"

// The file, all integers big-endian. Drawings of all records are in docs/formats/flink-metadata.md.
//
//	+------------+---------+----------------+----------------------+------------------+-----------+
//	| 4960672D   | i32     | i64            | i32 n, n × master    | i32 n,           | [v4+]     |
//	| magic      | version | checkpoint id  | state                | n × operator     | properties|
//	+------------+---------+----------------+----------------------+------------------+-----------+
//	| footer: only in files of this project, see footer.go                                        |
//	+---------------------------------------------------------------------------------------------+
const (
	fileMagic    = 0x4960672d
	headerLength = 8
	masterMagic  = 0xc96b1696

	oldestVersion = 2
	newestVersion = 6
	// oldestWritable: Flink itself has no writer for older ones.
	oldestWritable = 3
	defaultVersion = 4

	// firstWithProperties and so on: the versions that added a part.
	firstWithFinished       = 3
	firstWithProperties     = 4
	firstWithNames          = 5
	firstWithMergedChannels = 6
)

// Parse reads the bytes of a `_metadata` file. dir is the qualified directory in which the file lies: it is put into the
// relative handles. With "" they stay unresolved, which is enough to look at them and to write them again.
//
// The checkpoint does not refer to data. An error is an *[Error]: [core.ErrUnsupportedVersion] for version 1 and versions above
// 6 (and footers newer than this package), else [core.ErrCorrupt]. Bytes behind the end are corrupt unless they are a [Footer].
//
// Two layouts that Flink 1.11 and 1.14 wrote, and that no other Flink reads, have no version of their own. A file of version 3
// that is not valid otherwise is read as one of them if exactly one fits to the last byte.
func Parse(data []byte, dir string) (*Checkpoint, error) {
	version, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	body, foot, err := splitFooter(data)
	if err != nil {
		err.in("footer")
		return nil, err
	}
	p := newParser(body, dir, version)
	p.annex = foot.annex()
	c := p.file(foot)
	if p.err != nil && version == 3 {
		c = p.retry(foot)
	}
	if p.err != nil {
		return nil, p.err
	}
	return c, nil
}

func parseHeader(data []byte) (int, *Error) {
	if len(data) < headerLength {
		return 0, corrupt(len(data), "the header needs %d bytes", headerLength)
	}
	if magic := binary.BigEndian.Uint32(data); magic != fileMagic {
		return 0, corrupt(0, "%08x is not the magic number of a checkpoint's metadata", magic)
	}
	version := int32(binary.BigEndian.Uint32(data[4:]))
	switch {
	case version > newestVersion:
		return 0, unsupported(4, "version %d is newer than %d", version, newestVersion)
	case version == 1:
		return 0, unsupported(4, "version 1, of Flink 1.1 and 1.2, cannot be read")
	case version < 1:
		return 0, corrupt(4, "there is no version %d", version)
	}
	return int(version), nil
}

// parser holds one attempt to read a body.
type parser struct {
	cursor
	version int
	dir     string
	// private: the bytes are a task snapshot of this package, which has tags for the historic layouts.
	private bool
	// historicLayout is that of the whole file; sawChannels and sawChangelog tell that records were met in which it matters.
	historicLayout
	sawChannels, sawChangelog bool
	// scan is not nil if operators are visited instead of gathered.
	scan *scan

	depth   int
	subtask int // index of the subtask that is being read
	annex   annexReader

	texts   textSlab
	recent  [recentTexts]string
	scratch []byte
	slabs   slabs
}

func newParser(body []byte, dir string, version int) *parser {
	p := &parser{cursor: cursor{data: body, off: headerLength}, dir: dir, version: version}
	if version == 3 {
		p.slabs.each(restartable.keepChunks)
	}
	return p
}

// file reads the whole body and what stands behind it.
func (p *parser) file(foot *rawFooter) *Checkpoint {
	c := &Checkpoint{Version: p.version}
	p.checkpoint(c)
	if p.err == nil && p.version >= firstWithProperties {
		c.Properties = p.properties()
		p.failedIn("properties")
	}
	if p.err == nil && p.rest() > 0 {
		p.has(min(p.rest(), len(footerMagic)))
		p.fail(trailingBytes(p.data[p.off:], p.pos(), p.rest()))
	}
	if p.err == nil {
		p.footer(c, foot)
	}
	return c
}

// historicLayout is one of the two that have no version of their own.
type historicLayout struct{ channels111, changelog114 bool }

// retry reads a file of version 3 that is not valid in today's layout in those of Flink 1.11 and 1.14. A layout that differs
// only in records that were never met need not be tried. What the first attempt found is reported if none fits, or both.
func (p *parser) retry(foot *rawFooter) *Checkpoint {
	first := p.err
	var fit []historicLayout
	for _, layout := range p.candidates() {
		if p.attempt(layout, foot); p.err == nil {
			fit = append(fit, layout)
		}
	}
	if len(fit) != 1 {
		p.err = first
		return nil
	}
	return p.attempt(fit[0], foot) // once more: what an attempt makes lasts until the next
}

// candidates are the historic layouts in which the file may be valid.
func (p *parser) candidates() []historicLayout {
	var candidates []historicLayout
	if p.sawChannels {
		candidates = append(candidates, historicLayout{channels111: true})
	}
	if p.sawChangelog {
		candidates = append(candidates, historicLayout{changelog114: true})
	}
	return candidates
}

// attempt starts over. It uses the memory of the attempt before, so that trying costs time only.
func (p *parser) attempt(layout historicLayout, foot *rawFooter) *Checkpoint {
	p.cursor = cursor{data: p.data, off: headerLength}
	p.historicLayout = layout
	p.depth, p.subtask = 0, 0
	p.annex = foot.annex()
	p.slabs.each(restartable.restart)
	return p.file(foot)
}
