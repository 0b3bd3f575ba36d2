//go:build race

package ordered_test

const (
	historySessions = 4
	loaderRounds    = 1
	loaderCalls     = 34_000 // enough for two goroutines
)
