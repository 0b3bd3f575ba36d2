//go:build !race

package statestore_test

// How much the sweeps do. Under the race detector they are too slow for more than a sample.
const (
	histories      = 60
	crashHistories = 6
	crashOneIn     = 1
	longChain      = 20_000   // deltas
	largeValue     = 64 << 20 // bytes
)
