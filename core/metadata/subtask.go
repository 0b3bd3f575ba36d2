package metadata

import (
	"encoding/binary"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// A task snapshot is a SubtaskState on its way from a worker to the coordinator.
//
//	offset
//	0    4 bytes  magic  'H' 'C' 'T' 'S'
//	4    u8       version, 1
//	5    i32 n    n bytes: a SubtaskState as in version 6 of the file; the tags 8 to 10 plus 128 have the layout of Flink 1.14
//	…    annex    checksums of files, see annex.go
//	…    i32 n    n × utf: directories of relative handles, then references from handles to them as in the annex
//	-4   u32      CRC32C of everything before
const (
	subtaskMagic   = "HCTS"
	subtaskVersion = 1
	subtaskHead    = len(subtaskMagic) + 1
	subtaskTail    = 4
)

// AppendSubtask appends a compact binary form of s, with all checksums and with the directories of relative handles. The
// error is fs.ErrInvalid, an *[Error], as that of [Append].
func AppendSubtask(dst []byte, s *SubtaskState) ([]byte, error) {
	e := &encoder{buf: dst, base: len(dst), version: newestVersion, private: true}
	e.buf = append(e.buf, subtaskMagic...)
	e.u8(subtaskVersion)
	length := len(e.buf)
	e.u32(0)
	e.state(s)
	if e.err == nil {
		e.patch(length, len(e.buf)-length-4)
		e.annex.append(e)
		e.annex.appendDirs(e)
	}
	if e.err != nil {
		return dst, e.err
	}
	e.u32(e.checksum())
	return e.buf, nil
}

// ParseSubtask is the inverse of [AppendSubtask]. The value does not refer to data. The error is core.ErrCorrupt or
// core.ErrUnsupportedVersion, an *[Error]. Memory is bounded as that of [Parse].
func ParseSubtask(data []byte) (*SubtaskState, error) {
	if len(data) < subtaskHead+subtaskTail || string(data[:len(subtaskMagic)]) != subtaskMagic {
		return nil, corrupt(0, "this is not a task snapshot")
	}
	if version := data[len(subtaskMagic)]; version != subtaskVersion {
		return nil, unsupported(len(subtaskMagic), "version %d of a task snapshot", version)
	}
	end := len(data) - subtaskTail
	if core.CRC32C(data[:end]) != binary.BigEndian.Uint32(data[end:]) {
		return nil, corrupt(end, "the checksum of the task snapshot is wrong")
	}
	p := &parser{cursor: cursor{data: data[:end], off: subtaskHead}, version: newestVersion, private: true}
	length := p.length(1)
	start := p.off
	p.off += length
	if p.err == nil {
		p.annex.read(p)
	}
	if p.err == nil {
		p.annex.readDirs(p)
	}
	if p.err == nil && p.rest() > 0 {
		p.fail(corrupt(p.off, "%d bytes are left over", p.rest()))
	}
	if p.err != nil {
		return nil, p.err
	}
	p.cursor = cursor{data: data[:start+length], off: start}
	s := new(SubtaskState)
	p.state(s)
	switch {
	case p.err != nil:
		return nil, p.err
	case p.rest() > 0:
		return nil, corrupt(p.off, "%d bytes behind the state", p.rest())
	case !p.annex.done():
		return nil, corrupt(start+length, "the annex refers to more than the %d files of the state", p.annex.next)
	}
	return s, nil
}
