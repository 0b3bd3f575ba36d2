package hdfsfs

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// asNameNode compares names as signed bytes.
func asNameNode(a, b string) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(int8(a[i]), int8(b[i])); c != 0 { //nolint:gosec // that is how it compares
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func TestAListingInTheOrderOfTheNameNodeComesOutInTheOrderOfBytes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	letters := []rune("ab.Zé€😀")
	for range 300 {
		var all []string
		for range random.IntN(40) {
			name := make([]rune, 1+random.IntN(4))
			for i := range name {
				name[i] = letters[random.IntN(len(letters))]
			}
			all = append(all, string(name))
		}
		slices.SortFunc(all, asNameNode)
		all = slices.Compact(all)
		var got []string
		o := ordered{yield: func(s status) bool { got = append(got, s.name); return true }}
		for _, name := range all {
			require.True(t, o.add(status{name: name}))
		}
		o.flush()
		slices.Sort(all)
		require.Equal(t, all, got)
	}
}

func TestAListingThatIsStoppedYieldsNoMore(t *testing.T) {
	yields := 0
	o := ordered{yield: func(status) bool { yields++; return false }}
	require.True(t, o.add(status{name: "é"}))
	require.False(t, o.add(status{name: "ê.a"}) && o.add(status{name: "b"}))
	o.flush()
	require.Equal(t, 1, yields)
}
