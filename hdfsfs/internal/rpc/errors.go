package rpc

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// ErrClosed: the client was closed before or during the call.
var ErrClosed = fmt.Errorf("the HDFS client is closed: %w", fs.ErrClosed)

// errNoAnswer: a server took a call and was silent for the time that a call may take.
var errNoAnswer = errors.New("no answer in time")

// ServerError is an exception that a server answered with. The class alone says what it is.
type ServerError struct {
	Server  string // host:port
	Method  string
	Class   string // the whole name of the Java class
	Message string // its first line
	Fatal   bool   // the server then closed the connection
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("%s: %s: %s: %s", e.Server, e.Method, e.Class, e.Message)
}

// TransportError says that no answer came: there was no connection, or it was lost.
type TransportError struct {
	Server string // host:port
	Sent   bool   // the call may have reached the server, which then may have executed it
	Err    error
}

func (e *TransportError) Error() string {
	if e.Sent {
		return fmt.Sprintf("%s: connection lost: %v", e.Server, e.Err)
	}
	return fmt.Sprintf("%s: no connection: %v", e.Server, e.Err)
}

// Unwrap returns the cause.
func (e *TransportError) Unwrap() error { return e.Err }

// maxMessage bounds what an error keeps of a server's text.
const maxMessage = 1024

func serverError(server, method string, h wire.ResponseHeader) *ServerError {
	message := h.Message
	// Some messages repeat the class; most go on with the stack.
	message = strings.TrimPrefix(message, h.Exception+": ")
	message, _, _ = strings.Cut(message, "\n")
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	class := h.Exception
	if class == "" {
		class = h.Detail.String()
	}
	return &ServerError{
		Server: server, Method: method, Class: valid(class), Message: valid(message),
		Fatal: h.Status == wire.RpcResponseHeader_FATAL,
	}
}

func valid(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }
