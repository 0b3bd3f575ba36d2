package faultfs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// ErrInjected is the cause of an injected failure that names no other.
var ErrInjected = errors.New("injected fault")

// Op is the method that a [Call] calls.
type Op string

// The methods that are counted. OpClose is Writer.Close; closing a Reader and seeking in it touch no storage.
const (
	OpCreate    Op = "create"
	OpOpen      Op = "open"
	OpStat      Op = "stat"
	OpList      Op = "list"
	OpMkdirAll  Op = "mkdir"
	OpRename    Op = "rename"
	OpRemove    Op = "remove"
	OpRemoveAll Op = "removeall"
	OpWrite     Op = "write"
	OpSync      Op = "sync"
	OpClose     Op = "close"
	OpAbort     Op = "abort"
	OpRead      Op = "read"
	OpReadAt    Op = "readat"
)

// Call is one call that was made.
type Call struct {
	// Index counts the calls of this FS from 0.
	Index int
	Op    Op
	Name  string
	// NewName is set for a rename.
	NewName string
	// Offset is the position in the file of a call on a stream.
	Offset int64
	// Size is the number of bytes given to Write, or asked of Read and ReadAt.
	Size int
}

// Fault is what happens to a call. The zero value is nothing.
type Fault struct {
	// Err fails the call, before it has any effect unless After or Tear is set. The caller gets it in an *fs.PathError.
	Err error
	// After lets the call happen first, and then Delay, Block and Err: its reply is late or lost. A Create whose reply is lost
	// leaves an empty file behind, although the contract asks for none: so does a cut connection.
	After bool
	// Delay holds the call up, until its context ends.
	Delay time.Duration
	// Block holds the call up until the channel is closed, its context ends or, for a Writer, Abort is called.
	Block <-chan struct{}
	// Tear lets only the first Tear bytes of a Write, Read or ReadAt through, or the first Tear entries of a List; then
	// comes Err, or ErrInjected.
	Tear int
	// Flip inverts one bit of what is written or read: bit number Bit, counted from the first byte's lowest bit and modulo
	// the number of bits.
	Flip bool
	Bit  int
}

// IsZero reports whether nothing happens to the call.
func (f Fault) IsZero() bool {
	return f.Err == nil && f.Delay == 0 && f.Block == nil && f.Tear <= 0 && !f.Flip
}

// hold waits as long as the fault says. The error is bare, and the call has then ended early.
func (f Fault) hold(ctx context.Context, broken <-chan struct{}) error {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-broken:
			return errBroken
		}
	}
	if f.Block != nil {
		select {
		case <-f.Block:
		case <-ctx.Done():
			return ctx.Err()
		case <-broken:
			return errBroken
		}
	}
	return nil
}

// cause of the failure of a torn call.
func (f Fault) cause() error {
	if f.Err != nil {
		return f.Err
	}
	return ErrInjected
}

// flip returns p, or a copy of it with one bit inverted.
func (f Fault) flip(p []byte) []byte {
	if !f.Flip || len(p) == 0 {
		return p
	}
	bits := len(p) * 8
	bit := (f.Bit%bits + bits) % bits
	q := append([]byte(nil), p...)
	q[bit/8] ^= 1 << (bit % 8)
	return q
}

func (c Call) wrap(err error) error {
	if err == nil {
		return nil
	}
	if c.Op == OpRename {
		return core.RenameError(c.Name, c.NewName, err)
	}
	return core.PathError(string(c.Op), c.Name, err)
}

// Injector decides the fate of a call. It may be called from several goroutines at once, and may use the FS.
type Injector func(Call) Fault

// Nth injects into the call with index i.
func Nth(i int, fault Fault) Injector {
	return Match(func(c Call) bool { return c.Index == i }, fault)
}

// From injects into the call with index i and every later one, as if the storage were gone from then on.
func From(i int, fault Fault) Injector {
	return Match(func(c Call) bool { return c.Index >= i }, fault)
}

// OnOp injects into every call of op.
func OnOp(op Op, fault Fault) Injector {
	return Match(func(c Call) bool { return c.Op == op }, fault)
}

// Match injects into every call for which pred is true.
func Match(pred func(Call) bool, fault Fault) Injector {
	return func(c Call) Fault {
		if pred(c) {
			return fault
		}
		return Fault{}
	}
}

// Any takes the first fault that one of the injectors gives.
func Any(injectors ...Injector) Injector {
	return func(c Call) Fault {
		for _, inject := range injectors {
			if fault := inject(c); !fault.IsZero() {
				return fault
			}
		}
		return Fault{}
	}
}

// Once lets only the first fault through that inject gives.
func Once(inject Injector) Injector { return Window(0, 1, inject) }

// Window counts the faults that inject gives and lets through only n of them, after the first skip.
func Window(skip, n int, inject Injector) Injector {
	var mu sync.Mutex
	seen := 0
	return func(c Call) Fault {
		fault := inject(c)
		if fault.IsZero() {
			return Fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		seen++
		if seen <= skip || seen > skip+n {
			return Fault{}
		}
		return fault
	}
}
