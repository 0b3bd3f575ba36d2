package statestore

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrBudget: the versions that are in use leave no room in the memory budget. Close views and end transactions that are not
// needed, or give the [Budget] a higher limit.
var ErrBudget = errors.New("memory budget exceeded")

// ConflictError says that a version is there already with other content: of another attempt, or of another run. What is
// there stays. To go on from an older version, roll back to it. It is fs.ErrExist.
type ConflictError struct {
	Version int64
	// Differences is how many keys differ.
	Differences int
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("version %d is committed already, with other content: %d keys differ", e.Version, e.Differences)
}

// Unwrap makes the error fs.ErrExist.
func (e *ConflictError) Unwrap() error { return fs.ErrExist }

// ReplacedError says that the version which a transaction began from was replaced or removed since: by a rollback, or by a
// program that does not know of owners. Load it again. It is fs.ErrExist.
type ReplacedError struct {
	Version int64
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("version %d is not any more what the transaction began from", e.Version)
}

// Unwrap makes the error fs.ErrExist.
func (e *ReplacedError) Unwrap() error { return fs.ErrExist }

// OpenTransactionsError is what Close returns if transactions had not ended. Their changes are lost.
type OpenTransactionsError struct {
	// Versions that they would have made.
	Versions []int64
}

func (e *OpenTransactionsError) Error() string {
	return fmt.Sprintf("transactions that were neither committed nor aborted, for the versions %v", e.Versions)
}
