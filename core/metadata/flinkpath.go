package metadata

import (
	"strings"
	"unicode"
)

// flinkPath is a path taken apart as Flink's Path does: scheme and authority by hand, without any unescaping. Drive letters of
// Windows have no meaning here.
type flinkPath struct {
	scheme, authority string
	path              string
	slashes           bool // there were slashes for an authority, even if it is empty
}

func splitFlinkPath(s string) flinkPath {
	var p flinkPath
	colon, slash := strings.IndexByte(s, ':'), strings.IndexByte(s, '/')
	if colon >= 0 && (slash < 0 || colon < slash) {
		p.scheme, s = s[:colon], s[colon+1:]
	}
	if strings.HasPrefix(s, "//") && len(s) > 2 {
		end := strings.IndexByte(s[2:], '/')
		if end < 0 {
			end = len(s) - 2
		}
		p.authority, s, p.slashes = s[2:2+end], s[2+end:], true
	}
	p.path = cleanFlinkPath(s)
	return p
}

// cleanFlinkPath makes one slash of several, of backslashes too, drops one at the end, and resolves "." and ".." as
// java.net.URI does: those ".." at the front that lead nowhere stay.
func cleanFlinkPath(path string) string {
	plain := !strings.ContainsAny(path, `\.`) && !strings.Contains(path, "//")
	if plain {
		if len(path) > 1 {
			path = strings.TrimSuffix(path, "/")
		}
		return path
	}
	path = strings.ReplaceAll(path, `\`, "/")
	absolute := strings.HasPrefix(path, "/")
	var kept []string
	open := false // the last component was resolved away: java.net.URI leaves its slash
	for component := range strings.SplitSeq(path, "/") {
		switch {
		case component == "":
			continue
		case component == ".":
			open = true
			continue
		case component == ".." && len(kept) > 0 && kept[len(kept)-1] != "..":
			kept = kept[:len(kept)-1]
			open = true
			continue
		}
		kept = append(kept, component)
		open = false
	}
	clean := strings.Join(kept, "/")
	if open && len(kept) > 0 {
		clean += "/"
	}
	if absolute {
		clean = "/" + clean
	}
	return clean
}

// String is what Path.toString gives.
func (p flinkPath) String() string {
	prefix := ""
	if p.scheme != "" {
		prefix = p.scheme + ":"
	}
	if p.authority != "" {
		prefix += "//" + p.authority
	}
	return prefix + p.path
}

// uri is what Path.toUri().toString() gives: the path is escaped where java.net.URI escapes.
func (p flinkPath) uri() string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	if p.scheme != "" {
		b.WriteString(p.scheme + ":")
	}
	if p.slashes {
		b.WriteString("//" + p.authority)
	}
	for rest := p.path; rest != ""; {
		r, size := decodeRune(rest)
		if r < 0x80 && !uriPathByte(byte(r)) || r >= 0x80 && (unicode.Is(unicode.Z, r) || unicode.IsControl(r)) {
			for i := range size {
				b.WriteByte('%')
				b.WriteByte(hex[rest[i]>>4])
				b.WriteByte(hex[rest[i]&0xf])
			}
		} else {
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	return b.String()
}

func uriPathByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c != 0 && strings.IndexByte("-_.!~*'():@&=+$,;/", c) >= 0
}
