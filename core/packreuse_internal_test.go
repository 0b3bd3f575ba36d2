package core

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhichFilesOfSharedSegmentsAreRewritten(t *testing.T) {
	for name, c := range map[string]struct {
		use           packUse
		amplification float64
		want          bool
	}{
		"all needed":       {packUse{size: 100, live: 100}, 2, false},
		"half needed":      {packUse{size: 100, live: 50}, 2, false},
		"less than half":   {packUse{size: 100, live: 49}, 2, true},
		"a third of three": {packUse{size: 99, live: 33}, 3, false},
		"no dead bytes":    {packUse{size: 100, live: 99}, 1, true},
		"exactly one":      {packUse{size: 100, live: 100}, 1, false},
		"overlapping":      {packUse{size: 100, live: 150}, 1, false},
		"nothing at all":   {packUse{size: 1}, 1e9, true},
	} {
		require.Equal(t, c.want, planRewrite(map[string]packUse{"f": c.use}, c.amplification)["f"], name)
	}
}

func TestLengthsOfFilesThatAreGoneAreForgotten(t *testing.T) {
	p := &Packer{sizes: map[string]int64{}}
	for i := range maxSizes + 10 {
		p.sizes[string(rune(i+0x4e00))] = 1
	}
	used := map[string]packUse{string(rune(0x4e00)): {}}
	p.forgetSizes(used)
	require.Equal(t, map[string]int64{string(rune(0x4e00)): 1}, p.sizes)
}
