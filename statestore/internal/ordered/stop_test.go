package ordered_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

func TestALoaderThatIsStoppedAnywhereMakesNothingAndCanBeUsedAgain(t *testing.T) {
	const keys = 40_000
	for _, unsorted := range []bool{false, true} {
		for _, parallelism := range []int{0, 2} {
			var asked atomic.Int64
			limit := int64(-1)
			l := ordered.Loader{Parallelism: parallelism, Stop: func() bool {
				n := asked.Add(1)
				return limit >= 0 && n > limit
			}}
			fill := func() {
				for i := range uint64(keys) {
					key := i
					if unsorted {
						key = i * 0x9e3779b97f4a7c15
					}
					l.Put(fmt.Appendf(nil, "%016x", key), []byte("12345678"))
				}
			}
			fill()
			require.Equal(t, keys, l.Map().Len())
			total := asked.Load()
			require.Greater(t, total, int64(keys/100), "it is asked often enough to end soon")
			for _, limit = range []int64{0, 1, 5, total / 3, total - total/3, total - 1} {
				asked.Store(0)
				fill()
				require.Nil(t, l.Map(), "stopped at %d of %d", limit, total)
			}
			limit = -1
			fill()
			m := l.Map()
			require.NoError(t, m.Check())
			require.Equal(t, keys, m.Len())
		}
	}
}
