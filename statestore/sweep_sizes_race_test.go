//go:build race

package statestore_test

const (
	histories      = 4
	crashHistories = 1
	crashOneIn     = 20
	longChain      = 2_000   // deltas
	largeValue     = 8 << 20 // bytes
)
