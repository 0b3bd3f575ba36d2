//go:build race

package statestore_test

const (
	histories      = 4
	crashHistories = 1
	crashOneIn     = 20
)
