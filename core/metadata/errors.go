package metadata

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Error says where in a checkpoint something is wrong. Err is [core.ErrCorrupt] or [core.ErrUnsupportedVersion] for bytes that
// were read, and fs.ErrInvalid for a value that cannot be written.
type Error struct {
	// Offset in the bytes that were read, -1 when a value is written.
	Offset int64
	// Field is the way to the value, such as "operators[3].subtasks[7].managedKeyed.delegate"; it may be "".
	Field string
	// Reason is for people.
	Reason string
	Err    error
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("checkpoint metadata: ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Reason)
	if e.Offset >= 0 {
		b.WriteString(" (at byte " + strconv.FormatInt(e.Offset, 10) + ")")
	}
	b.WriteString(": " + e.Err.Error())
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// in puts the name of an enclosing value before the field. It is called on the way out of the value, so that no path is
// kept while all is well.
func (e *Error) in(name string) {
	switch {
	case e.Field == "":
		e.Field = name
	case e.Field[0] == '[':
		e.Field = name + e.Field
	default:
		e.Field = name + "." + e.Field
	}
}

func (e *Error) inIndex(name string, i int) { e.in(name + indexed(i)) }

func indexed(i int) string { return "[" + strconv.Itoa(i) + "]" }

func corrupt(offset int, format string, args ...any) *Error {
	return &Error{Offset: int64(offset), Reason: fmt.Sprintf(format, args...), Err: core.ErrCorrupt}
}

func unsupported(offset int, format string, args ...any) *Error {
	return &Error{Offset: int64(offset), Reason: fmt.Sprintf(format, args...), Err: core.ErrUnsupportedVersion}
}

func invalid(format string, args ...any) *Error {
	return &Error{Offset: -1, Reason: fmt.Sprintf(format, args...), Err: fs.ErrInvalid}
}
