package metadata

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
)

// dumpWriter writes the JSON of the oracle dump: two spaces of indent, one member or element a line, lists of numbers on one
// line, ASCII only with every other UTF-16 unit escaped, so that lone surrogates survive.
type dumpWriter struct {
	out   *bufio.Writer
	depth int
	first bool // no member was written yet to the object or list that is open
}

func newDumpWriter(w io.Writer) *dumpWriter { return &dumpWriter{out: bufio.NewWriterSize(w, 64<<10)} }

// next begins a new element or, with a key, a new member.
func (d *dumpWriter) next(key string) {
	if !d.first {
		d.out.WriteByte(',')
	}
	d.first = false
	d.newline()
	if key != "" {
		d.string(key)
		d.out.WriteString(": ")
	}
}

func (d *dumpWriter) newline() {
	d.out.WriteByte('\n')
	for range d.depth {
		d.out.WriteString("  ")
	}
}

// object writes an object of the members that body writes. In a list the key is "".
func (d *dumpWriter) object(key string, body func()) {
	if d.depth > 0 {
		d.next(key)
	}
	d.nest('{', '}', body)
}

func (d *dumpWriter) nest(open, end byte, body func()) {
	d.out.WriteByte(open)
	d.depth++
	d.first = true
	body()
	d.depth--
	if !d.first { // something was written
		d.newline()
	}
	d.first = false
	d.out.WriteByte(end)
}

// list writes a list of the elements that body writes.
func (d *dumpWriter) list(key string, body func()) {
	d.next(key)
	d.nest('[', ']', body)
}

func (d *dumpWriter) number(key string, v int64) {
	d.next(key)
	d.int(v)
}

func (d *dumpWriter) int(v int64) {
	d.out.Write(strconv.AppendInt(d.out.AvailableBuffer(), v, 10))
}

func (d *dumpWriter) numbers(key string, list []int64) {
	d.next(key)
	d.out.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			d.out.WriteString(", ")
		}
		d.int(v)
	}
	d.out.WriteByte(']')
}

func (d *dumpWriter) boolean(key string, v bool) {
	d.next(key)
	d.out.WriteString(strconv.FormatBool(v))
}

func (d *dumpWriter) null(key string) {
	d.next(key)
	d.out.WriteString("null")
}

func (d *dumpWriter) text(key, v string) {
	d.next(key)
	d.string(v)
}

// textOrNull writes null for "".
func (d *dumpWriter) textOrNull(key, v string) {
	if v == "" {
		d.null(key)
		return
	}
	d.text(key, v)
}

// longBytes is the length up to which bytes are written in full.
const longBytes = 64

func (d *dumpWriter) bytes(key string, b []byte) {
	d.object(key, func() {
		d.number("length", int64(len(b)))
		if len(b) <= longBytes {
			d.text("hex", hex.EncodeToString(b))
		} else {
			d.text("sha256", sha256Text(b))
		}
	})
}

func sha256Text(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (d *dumpWriter) string(s string) {
	d.out.WriteByte('"')
	for s != "" {
		r, size := decodeRune(s)
		s = s[size:]
		switch {
		case r == '"' || r == '\\':
			d.out.WriteByte('\\')
			d.out.WriteByte(byte(r))
		case r >= ' ' && r <= '~':
			d.out.WriteByte(byte(r))
		case r >= supplementary:
			d.unit(surrogateMin + (r-supplementary)>>10)
			d.unit(lowSurrogateMin + (r-supplementary)&0x3ff)
		default:
			d.unit(r)
		}
	}
	d.out.WriteByte('"')
}

func (d *dumpWriter) unit(u rune) {
	const digits = "0123456789abcdef"
	d.out.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		d.out.WriteByte(digits[u>>shift&0xf])
	}
}
