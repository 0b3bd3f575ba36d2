package rpc

import (
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
	"sync"
	"time"
)

// Plan decides what comes after a failed attempt. It must depend on nothing but its argument.
type Plan func(Failure) Decision

// Semantics say what a repetition of a call does.
type Semantics uint8

const (
	// Idempotent calls may be executed twice.
	Idempotent Semantics = iota
	// AtMostOnce calls must not: a server recognises the repetition by the ids of client and call.
	AtMostOnce
)

// Cause is the kind of a failure.
type Cause uint8

const (
	// NoConnection: nothing was sent.
	NoConnection Cause = iota
	// Lost: the call was, or may have been, sent, and no answer came.
	Lost
	// Answered: the server answered with an exception.
	Answered
	// Refused: the client and the server do not agree on who the client is, or on the protocol.
	Refused
)

// Failure is what a Plan knows.
type Failure struct {
	Cause      Cause
	Class      string // of the exception, if Answered
	Semantics  Semantics
	Attempts   int           // that have failed, this one included
	Failovers  int           // that this call has made
	Servers    int           // of the service
	Elapsed    time.Duration // since the first failure of this call
	Connected  bool          // some server has answered this client before
	NoSuchHost bool          // there is no address for the name of the server
	Silent     bool          // the server took the call and was silent for Options.CallTimeout
}

// Action is what to do next.
type Action uint8

const (
	// GiveUp returns the failure to the caller.
	GiveUp Action = iota
	// Repeat calls the same server again.
	Repeat
	// FailOver calls the next server.
	FailOver
)

// Decision is an action, and how long to wait before it. The wait is spread: it is multiplied by a number in [0.5, 1.5).
type Decision struct {
	Action Action
	Wait   time.Duration
}

// Retry is a failure after which the call goes on.
type Retry struct {
	Method  string
	Failure Failure
	Err     error
	Action  Action
	Wait    time.Duration // spread
}

// randomJitter is a source of its own, safe for concurrent use.
func randomJitter() func() float64 {
	var seed [16]byte
	_, _ = rand.Read(seed[:]) // never fails
	var mu sync.Mutex
	source := mathrand.New(mathrand.NewPCG(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Float64()
	}
}
