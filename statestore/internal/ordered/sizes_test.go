//go:build !race

package ordered_test

const (
	historySessions = 20
	loaderRounds    = 2
	loaderCalls     = 40_000
)
