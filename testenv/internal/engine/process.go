package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// Settings say how the JVM is run.
type Settings struct {
	Heap  string   // "1g"; empty means that
	Flags []string // further ones of the JVM, such as -Dname=value
	// Measured leaves the JVM's compilers and collector as they are in production. The default starts fast.
	Measured bool
}

// Process is a JVM that answers calls, one at a time. Its methods may be called concurrently.
type Process struct {
	name    string
	starter *proc.Starter
	child   *proc.Child
	temp    string
	log     *tail
	in      io.WriteCloser
	out     *bufio.Reader

	mu   sync.Mutex
	dead error
}

// Start starts the program. It ends with Close, and on Linux when this process ends.
func (p Program) Start(s Settings) (*Process, error) {
	if s.Heap == "" {
		s.Heap = "1g"
	}
	// A JVM that is killed leaves behind what it has unpacked, tens of megabytes each.
	temp, err := os.MkdirTemp("", "hdfsckpt-"+p.kind.Name+"-")
	if err != nil {
		return nil, err
	}
	process, err := p.startIn(temp, s)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	return process, nil
}

func (p Program) startIn(temp string, s Settings) (*Process, error) {
	args := append([]string{"-Xmx" + s.Heap, "-Djava.io.tmpdir=" + temp}, p.kind.Flags...)
	if !s.Measured {
		args = append(args, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
	}
	args = append(append(args, s.Flags...), "-cp", p.classes+":"+p.jars+"/*", p.kind.Main)
	log := &tail{}
	cmd := exec.Command(p.java.Path, args...) //nolint:noctx // it outlives the call that starts it; Close ends it
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	starter := proc.NewStarter()
	child, err := starter.Start(cmd)
	if err != nil {
		starter.Close()
		return nil, err
	}
	return &Process{name: p.kind.Name + " " + p.kind.Version, starter: starter, child: child, temp: temp, log: log, in: in, out: bufio.NewReader(out)}, nil
}

// An Error is an exception that the engine has thrown: its class and message, and those of its causes.
type Error struct {
	Engine  string
	Command string
	Text    string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.Engine, e.Command, e.Text) }

// Call calls the command and returns what it answers; what it throws is an *Error. If ctx ends first the JVM is killed: it
// cannot be asked to stop.
func (p *Process) Call(ctx context.Context, command string, words ...string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return nil, p.dead
	}
	stop := context.AfterFunc(ctx, func() { _ = p.child.Kill() })
	failed, answer, err := p.exchange(append([]string{command}, words...))
	stop()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		p.dead = fmt.Errorf("%s: %s: the JVM is gone: %w: %s", p.name, command, err, p.log)
		return nil, p.dead
	}
	if failed {
		return nil, &Error{p.name, command, string(answer)}
	}
	return answer, nil
}

func (p *Process) exchange(words []string) (failed bool, answer []byte, err error) {
	call := binary.BigEndian.AppendUint32(nil, uint32(len(words)))
	for _, w := range words {
		call = binary.BigEndian.AppendUint32(call, uint32(len(w)))
		call = append(call, w...)
	}
	if _, err := p.in.Write(call); err != nil {
		return false, nil, err
	}
	var head [5]byte
	if _, err := io.ReadFull(p.out, head[:]); err != nil {
		return false, nil, err
	}
	answer = make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(p.out, answer)
	return head[0] != 0, answer, err
}

// Log is the end of what the JVM has printed.
func (p *Process) Log() string { return p.log.String() }

// Close kills the JVM. A second Close does nothing.
func (p *Process) Close() error {
	err := p.child.Kill()
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.dead, errClosed) {
		return nil
	}
	p.dead = fmt.Errorf("%s: %w", p.name, errClosed)
	p.starter.Close()
	return errors.Join(err, os.RemoveAll(p.temp))
}

var errClosed = errors.New("the JVM was closed")

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text strings.Builder
}

const maxTail = 16 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(b)
	if t.text.Len() > 2*maxTail {
		kept := proc.Tail(t.text.String(), maxTail)
		t.text.Reset()
		t.text.WriteString(kept)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return proc.Tail(t.text.String(), maxTail)
}
