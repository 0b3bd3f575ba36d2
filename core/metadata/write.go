package metadata

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
)

// WriteOptions chooses the form of a file.
type WriteOptions struct {
	// Version of the format: 3 for Flink 1.11 to 1.15, 4 for 1.16 and later, 5 for 2.0 and later, 6 for 2.1 and later. 0 is 4.
	// Every later Flink reads it too. Versions below 6 hold merged channel handles as the handles that they were merged from;
	// version 3 has no properties. What else a version cannot hold is left out of Flink's part of the file: names of operators
	// below 5 are in the footer.
	Version int
	// Footer is written behind the body unless it is nil, together with the checksums that the handles have. To keep that of a
	// checkpoint that was parsed, pass [Checkpoint.Footer].
	Footer *Footer
}

// Append appends the file to dst and returns the longer slice. The error is an *[Error]: fs.ErrInvalid for a checkpoint that the
// format cannot hold (a text above 65,535 bytes, no delegate, an index beyond the parallelism, …) and core.ErrUnsupportedVersion for
// a version that is never written. What Append wrote, Parse reads.
//
// A checkpoint that was parsed and not changed gives the same bytes again, at the same version with its footer; from version
// 3 on. Exceptions are files in which Flink 1.11 wrote channels: these are written as Flink 1.12 did.
func Append(dst []byte, c *Checkpoint, opts WriteOptions) ([]byte, error) {
	e := &encoder{buf: dst, base: len(dst)}
	if err := e.file(c, opts); err != nil {
		return dst, err
	}
	return e.buf, nil
}

// Write writes the file to w in pieces of about 64 KiB, so that it is never in memory as a whole. The error is that of
// [Append], or of w as it is; what was written by then is not a file.
func Write(w io.Writer, c *Checkpoint, opts WriteOptions) error {
	e := &encoder{buf: make([]byte, 0, spillBytes+spillBytes/4), w: w}
	if err := e.file(c, opts); err != nil {
		return err
	}
	e.flush()
	return e.ioErr
}

// spillBytes is how much is gathered before it is written.
const spillBytes = 64 << 10

// encoder gathers bytes; with a writer it passes them on from time to time. The first failure sticks, as with cursor.
type encoder struct {
	buf     []byte
	base    int // in buf: bytes from here on are in neither crc nor w
	crc     uint32
	w       io.Writer
	ioErr   error
	err     *Error
	version int
	// private as for parser; keep114 writes the layout of Flink 1.14 for handles that have it.
	private, keep114 bool
	checkpointID     int64
	filled           int // ids made up for handles that had none
	depth            int
	annex            annexWriter
}

func (e *encoder) file(c *Checkpoint, opts WriteOptions) error {
	e.version = opts.Version
	if e.version == 0 {
		e.version = defaultVersion
	}
	if e.version < oldestWritable || e.version > newestVersion {
		return unsupported(-1, "version %d is not written, %d to %d are", e.version, oldestWritable, newestVersion)
	}
	e.keep114 = e.version == 3 && fits114(c)
	e.checkpointID = c.ID
	e.u32(fileMagic)
	e.i32(e.version)
	e.checkpoint(c)
	if e.err == nil && e.version >= firstWithProperties {
		e.properties(c.Properties)
		e.failedIn("properties")
	}
	if e.err == nil && opts.Footer != nil {
		e.footer(c, opts.Footer)
		e.failedIn("footer")
	}
	if e.err != nil {
		return e.err
	}
	return e.ioErr
}

func (e *encoder) fail(err *Error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *encoder) failedIn(name string) bool {
	if e.err == nil {
		return false
	}
	e.err.in(name)
	return true
}

func (e *encoder) failedAt(name string, i int) bool {
	if e.err == nil {
		return false
	}
	e.err.inIndex(name, i)
	return true
}

// spill passes gathered bytes on if there is a writer and enough of them.
func (e *encoder) spill() {
	if e.w != nil && len(e.buf) >= spillBytes {
		e.flush()
	}
}

func (e *encoder) flush() {
	e.checksum()
	if e.ioErr == nil && e.err == nil {
		_, e.ioErr = e.w.Write(e.buf)
	}
	e.buf, e.base = e.buf[:0], 0
}

// checksum takes what was gathered into crc and returns it.
func (e *encoder) checksum() uint32 {
	e.crc = crc32.Update(e.crc, castagnoli, e.buf[e.base:])
	e.base = len(e.buf)
	return e.crc
}

func (e *encoder) u8(v byte) { e.buf = append(e.buf, v) }

func (e *encoder) u32(v uint32) {
	e.buf = append(e.buf, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// i32 writes a number that must fit.
func (e *encoder) i32(v int) {
	if v < math.MinInt32 || v > math.MaxInt32 {
		e.fail(invalid("%d does not fit into 32 bits", v))
	}
	e.u32(uint32(v))
}

func (e *encoder) i64(v int64) {
	e.buf = append(e.buf, byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func (e *encoder) boolean(v bool) {
	if v {
		e.u8(1)
	} else {
		e.u8(0)
	}
}

// patch puts a length over the four bytes at a place that was left for it.
func (e *encoder) patch(at, length int) {
	if length > math.MaxInt32 {
		e.fail(invalid("%d bytes do not fit under a length of 32 bits", length))
	}
	binary.BigEndian.PutUint32(e.buf[at:], uint32(length))
}

func (e *encoder) longs(list []int64) {
	for _, v := range list {
		e.i64(v)
	}
}

func (e *encoder) blob(b []byte) {
	e.i32(len(b))
	e.buf = append(e.buf, b...)
}

// text writes modified UTF-8 behind a length of 16 bits.
func (e *encoder) text(s string) {
	start := len(e.buf)
	e.buf = append(e.buf, byte(len(s)>>8), byte(len(s)))
	plain := true
	for i := range len(s) {
		if s[i]-1 >= 0x7f { // NUL, or not ASCII
			plain = false
			break
		}
	}
	if plain {
		e.buf = append(e.buf, s...)
	} else {
		var ok bool
		if e.buf, ok = appendModifiedUTF8(e.buf, s); !ok {
			e.fail(invalid("%.100q is not UTF-8", s))
		}
	}
	n := len(e.buf) - start - 2
	if n > math.MaxUint16 {
		e.fail(invalid("the text %.100q… takes %d bytes, %d are possible", s, n, math.MaxUint16))
	}
	e.buf[start], e.buf[start+1] = byte(n>>8), byte(n)
}
