// Package namenode calls the NameNodes of one nameservice: one method here for each of theirs that a file system needs.
//
// Errors are those of package rpc: a [*rpc.ServerError] has the class of the exception, and what it means for a caller is decided
// above this package. What a NameNode tells by an absent answer is fs.ErrNotExist. All methods are safe for concurrent use, may be
// called at any time, and return within moments of the end of their context.
//
// Every call is repeated until it is answered, as [Policy] says: after a lost answer, while a NameNode restarts, during a
// failover. The ids of client and call stay the same, so that a NameNode executes each call once.
package namenode
