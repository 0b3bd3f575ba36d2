package codec

import "encoding/binary"

// ning's chunks of LZF. Integers are big-endian.
//
//	offset  size  chunk
//	0       2     "ZV"
//	2       1     0 stored, 1 compressed
//	3       2     length of the payload
//	5       2     length of the content, only if compressed
//	…       …     payload
//
// A chunk holds at most 65535 bytes. There are no checksums and no end mark.
const (
	lzfStored      = 0
	lzfCompressed  = 1
	lzfMaxChunk    = 65535
	lzfMinCompress = 16 // shorter ones are stored, as ning's encoder does
	lzfHeaderLen   = 5
)

type lzfFraming struct{}

func (lzfFraming) scan(s *source, f *frame) error {
	for {
		f.off = s.pos()
		var header [lzfHeaderLen + 2]byte
		if err := s.readFull(header[:lzfHeaderLen]); err != nil {
			return err
		}
		if header[0] != 'Z' || header[1] != 'V' || header[2] > lzfCompressed {
			return corrupt(f.off, "no lzf chunk begins here")
		}
		n := int64(binary.BigEndian.Uint16(header[3:]))
		f.stored, f.rawLen = header[2] == lzfStored, int(n)
		if !f.stored {
			if err := s.readFull(header[lzfHeaderLen:]); err != nil {
				return headerError(err, f.off, "the end of an lzf header")
			}
			f.rawLen = int(binary.BigEndian.Uint16(header[5:]))
		}
		if err := s.readPayload(f, n); err != nil {
			return headerError(err, f.off, "the end of an lzf chunk")
		}
		if f.rawLen > 0 || !f.stored {
			return nil
		}
	}
}

func (lzfFraming) decode(dst []byte, f *frame) ([]byte, error) {
	if f.stored {
		return f.payload, nil
	}
	raw := grow(dst, f.rawLen)
	if !lzfDecompress(raw, f.payload) {
		return nil, corrupt(f.off, "the lzf chunk does not decompress to its %d bytes", f.rawLen)
	}
	return raw, nil
}

// lzfDecompress fills dst exactly from all of src, or returns false. A control byte below 32 begins a run of that many
// literals and one; else its three high bits are a length less 2 (7: one byte more follows), and its five low bits and the
// last byte a distance less 1.
func lzfDecompress(dst, src []byte) bool {
	d, i := 0, 0
	for i < len(src) {
		control := int(src[i])
		i++
		if control < 32 {
			n := control + 1
			if i+n > len(src) || d+n > len(dst) {
				return false
			}
			d += copy(dst[d:], src[i:i+n])
			i += n
			continue
		}
		n := control >> 5
		if n == 7 {
			if i >= len(src) {
				return false
			}
			n += int(src[i])
			i++
		}
		n += 2
		if i >= len(src) {
			return false
		}
		from := d - (control&0x1f<<8 | int(src[i])) - 1
		i++
		if from < 0 || d+n > len(dst) {
			return false
		}
		for end := d + n; d < end; { // a distance below the length repeats what was just written
			d += copy(dst[d:end], dst[from:d])
		}
	}
	return d == len(dst)
}

// lzfEncoder holds for each hash of three bytes where they were seen last, or 0.
type lzfEncoder struct {
	table [1 << 14]int32
}

func (e *lzfEncoder) encode(dst, raw []byte) ([]byte, error) {
	at := len(dst)
	if len(raw) >= lzfMinCompress {
		dst = append(dst, 'Z', 'V', lzfCompressed, 0, 0, byte(len(raw)>>8), byte(len(raw)))
		body := len(dst)
		dst = e.compress(dst, raw)
		if n := len(dst) - body; n < len(raw)-2 { // what the longer header costs
			binary.BigEndian.PutUint16(dst[at+3:], uint16(n))
			return dst, nil
		}
		dst = dst[:at]
	}
	dst = append(dst, 'Z', 'V', lzfStored, byte(len(raw)>>8), byte(len(raw)))
	return append(dst, raw...), nil
}

const (
	lzfMaxLiteral  = 32
	lzfMaxDistance = 1 << 13
	lzfMaxMatch    = 1<<8 + 1<<3
	lzfTail        = 4
)

// compress appends the LZF of in. It chooses matches as ning's encoder does, so that the bytes are the same.
func (e *lzfEncoder) compress(dst, in []byte) []byte {
	table := &e.table
	clear(table[:])
	slot := func(seen uint32) uint32 { return uint32(int32(seen*57321)>>9) & uint32(len(table)-1) }
	end := len(in) - lzfTail
	literals := 0
	flush := func(upTo int) {
		for literals > 0 {
			n := min(literals, lzfMaxLiteral)
			dst = append(dst, byte(n-1))
			dst = append(dst, in[upTo-literals:upTo-literals+n]...)
			literals -= n
		}
	}
	pos := 0
	seen := uint32(in[0])<<8 | uint32(in[1])
	for pos < end {
		seen = seen<<8 | uint32(in[pos+2])
		h := slot(seen)
		ref := int(table[h])
		table[h] = int32(pos)
		if ref >= pos || pos-ref > lzfMaxDistance || in[ref] != in[pos] || in[ref+1] != in[pos+1] || in[ref+2] != in[pos+2] {
			pos++
			literals++
			continue
		}
		flush(pos)
		n, longest := 3, min(end-pos+2, lzfMaxMatch)
		for n < longest && in[ref+n] == in[pos+n] {
			n++
		}
		dst = lzfAppendMatch(dst, n-2, pos-ref-1)
		pos += n - 2
		seen = uint32(in[pos])<<16 | uint32(in[pos+1])<<8 | uint32(in[pos+2])
		table[slot(seen)] = int32(pos)
		pos++
		seen = seen<<8 | uint32(in[pos+2])
		table[slot(seen)] = int32(pos)
		pos++
	}
	literals += len(in) - pos
	flush(len(in))
	return dst
}

func lzfAppendMatch(dst []byte, n, distance int) []byte {
	if n < 7 {
		return append(dst, byte(distance>>8+n<<5), byte(distance))
	}
	return append(dst, byte(distance>>8+7<<5), byte(n-7), byte(distance))
}
