package conf

import (
	"strconv"
	"strings"
)

// umask is octal, or symbolic: then it says what is left to whom, as in u=rwx,g=rx,o=.
func (v *values) umask(key string, fallback uint32) uint32 {
	s := v.text(key, "")
	if s == "" {
		return fallback
	}
	mask, ok := parseUmask(s)
	if !ok {
		v.wrong(key, s, "it must be octal, such as 022, or symbolic, such as u=rwx,g=rx,o=rx")
		return fallback
	}
	return mask
}

// parseUmask does what Hadoop's own parser does: of several clauses for a class the last one counts, and one with '-' leaves
// nothing to it.
func parseUmask(s string) (uint32, bool) {
	if octal := strings.TrimPrefix(s, "+"); len(octal) >= 3 {
		if n, err := strconv.ParseUint(octal, 8, 32); err == nil {
			return uint32(n), n <= 0o777
		}
	}
	var kept uint32
	for clause := range strings.SplitSeq(s, ",") {
		clause = strings.TrimSpace(clause)
		at := strings.IndexAny(clause, "=+-")
		if at < 0 {
			return 0, false
		}
		whom, known := bits(clause[:at], map[rune]uint32{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777})
		what, allowed := bits(clause[at+1:], map[rune]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111})
		if !known || !allowed {
			return 0, false
		}
		if clause[:at] == "" {
			whom = 0o777
		}
		kept &^= whom
		if clause[at] != '-' {
			kept |= whom & what
		}
	}
	return ^kept & 0o777, true
}

// bits joins those that letters stand for.
func bits(letters string, of map[rune]uint32) (uint32, bool) {
	var all uint32
	for _, letter := range letters {
		b, ok := of[letter]
		if !ok {
			return 0, false
		}
		all |= b
	}
	return all, true
}
