package metadata

import "unicode/utf8"

// Java's "modified UTF-8" writes NUL as C0 80 and encodes each UTF-16 unit by itself, so that a character above U+FFFF
// takes six bytes and a surrogate without its partner can be written. In Go such texts are UTF-8 that may also hold the
// three-byte form of a lone surrogate: nothing is lost, and valid text is valid UTF-8.

const (
	surrogateMin    = 0xd800
	lowSurrogateMin = 0xdc00
	surrogateMax    = 0xdfff
	supplementary   = 0x10000
)

// decodeRune is utf8.DecodeRuneInString that also takes the three-byte form of a surrogate.
func decodeRune(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 && len(s) >= 3 &&
		s[0] == 0xed && s[1]&0xe0 == 0xa0 && s[2]&0xc0 == 0x80 {
		return surrogateMin | rune(s[1]&0x1f)<<6 | rune(s[2]&0x3f), 3
	}
	return r, size
}

// appendUnit appends one UTF-16 unit as one to three bytes.
func appendUnit(dst []byte, unit rune) []byte {
	switch {
	case unit < 0x80:
		return append(dst, byte(unit))
	case unit < 0x800:
		return append(dst, 0xc0|byte(unit>>6), 0x80|byte(unit&0x3f))
	}
	return append(dst, 0xe0|byte(unit>>12), 0x80|byte(unit>>6&0x3f), 0x80|byte(unit&0x3f))
}

// appendModifiedUTF8 encodes s; it returns false for bytes that are no text.
func appendModifiedUTF8(dst []byte, s string) ([]byte, bool) {
	for len(s) > 0 {
		r, size := decodeRune(s)
		switch {
		case r == utf8.RuneError && size == 1:
			return dst, false
		case r == 0:
			dst = append(dst, 0xc0, 0x80)
		case r >= supplementary:
			dst = appendUnit(dst, surrogateMin+(r-supplementary)>>10)
			dst = appendUnit(dst, lowSurrogateMin+(r-supplementary)&0x3ff)
		default:
			dst = appendUnit(dst, r)
		}
		s = s[size:]
	}
	return dst, true
}

// appendDecodedUTF8 decodes what Java's readUTF accepts, which includes forms that its writeUTF never makes. The result is
// never longer than src. It returns false for the rest.
func appendDecodedUTF8(dst, src []byte) ([]byte, bool) {
	for len(src) > 0 {
		unit, size := decodeUnit(src)
		if size == 0 {
			return dst, false
		}
		src = src[size:]
		if unit >= surrogateMin && unit < lowSurrogateMin {
			low, lowSize := decodeUnit(src)
			if low >= lowSurrogateMin && low <= surrogateMax {
				src = src[lowSize:]
				unit = supplementary + (unit-surrogateMin)<<10 + (low - lowSurrogateMin)
				dst = utf8.AppendRune(dst, unit)
				continue
			}
		}
		dst = appendUnit(dst, unit)
	}
	return dst, true
}

// decodeUnit decodes one UTF-16 unit; the size is 0 at the end and for malformed bytes.
func decodeUnit(src []byte) (rune, int) {
	switch {
	case len(src) == 0:
		return 0, 0
	case src[0] < 0x80:
		return rune(src[0]), 1
	case src[0]&0xe0 == 0xc0:
		if len(src) < 2 || src[1]&0xc0 != 0x80 {
			return 0, 0
		}
		return rune(src[0]&0x1f)<<6 | rune(src[1]&0x3f), 2
	case src[0]&0xf0 == 0xe0:
		if len(src) < 3 || src[1]&0xc0 != 0x80 || src[2]&0xc0 != 0x80 {
			return 0, 0
		}
		return rune(src[0]&0x0f)<<12 | rune(src[1]&0x3f)<<6 | rune(src[2]&0x3f), 3
	}
	return 0, 0
}
