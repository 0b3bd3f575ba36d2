package text

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style is the colour of a piece of text.
type Style uint8

// The styles.
const (
	Plain Style = iota
	Bold
	Dim
	Good
	Busy
	Bad
)

var codes = map[Style]string{Bold: "1", Dim: "2", Good: "32", Busy: "33", Bad: "31"}

// Printer writes text for people. The first failure of the writer sticks and ends the output.
type Printer struct {
	w     io.Writer
	color bool
	err   error
}

// NewPrinter writes to w, with colours if asked for.
func NewPrinter(w io.Writer, color bool) *Printer { return &Printer{w: w, color: color} }

// Err is the first failure of the writer.
func (p *Printer) Err() error { return p.err }

// Line writes one line.
func (p *Printer) Line(format string, args ...any) { p.write(fmt.Sprintf(format, args...) + "\n") }

func (p *Printer) write(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

// Write implements io.Writer, for text that is made elsewhere.
func (p *Printer) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	var n int
	n, p.err = p.w.Write(b)
	return n, p.err
}

// Paint gives text a colour, if there are colours.
func (p *Printer) Paint(text string, style Style) string {
	if code := codes[style]; p.color && code != "" && text != "" {
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	return text
}

// Clean makes foreign text safe for a terminal: characters that are not printable, and bytes that are not UTF-8, become
// escapes as in Go's string literals.
func Clean(foreign string) string {
	if !strings.ContainsFunc(foreign, unprintable) && utf8.ValidString(foreign) {
		return foreign
	}
	var b strings.Builder
	for len(foreign) > 0 {
		r, size := utf8.DecodeRuneInString(foreign)
		if unprintable(r) || r == utf8.RuneError && size == 1 {
			quoted := strconv.QuoteToASCII(foreign[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(foreign[:size])
		}
		foreign = foreign[size:]
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
