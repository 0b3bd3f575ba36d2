// Package rpc calls methods of Hadoop servers by version 9 of Hadoop RPC.
//
// A [Client] is one party to the servers of one service: it has one id for its whole life and gives every call an id that its
// repetitions keep, over connections and over servers. By these two a NameNode recognises a repeated call and returns the result of
// the first one, so that a call whose answer was lost is repeated without a second effect. What is repeated, when, and where is
// decided by a [Plan], a pure function.
//
//	Client ──Call──► attempt ──► conn ─► write loop ─► server     one connection per server, any number of calls in flight
//	   ▲               │          ├──── read loop ◄──┘             answers in any order, found by call id
//	   └──── Plan ◄────┘ failure  └──── watch loop                 pings, silence, idleness
//
// Nothing runs that [Client.Close] does not wait for. A server cannot make a client allocate more than the limits of the Options.
package rpc
