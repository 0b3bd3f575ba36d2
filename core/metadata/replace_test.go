package metadata

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestRelocateReachesEveryObject(t *testing.T) {
	moved := 0
	for _, g := range ownGolden(t) {
		c, err := Parse(g.data(t), "file:/old")
		if err != nil {
			continue
		}
		before, err := Objects(c)
		if err != nil {
			continue
		}
		c.Relocate(Relocation{})
		same, err := Objects(c)
		require.NoError(t, err)
		require.Equal(t, before, same)

		move := func(path string) string {
			return "hdfs://moved/" + strings.ReplaceAll(strings.Trim(path, "/"), ":", "")
		}
		c.Relocate(Relocation{Directory: move, Stream: func(h core.StreamHandle) core.StreamHandle {
			switch h := h.(type) {
			case *core.FileHandle:
				own := *h
				own.Path = move(h.Path)
				return &own
			case *core.RelativeFileHandle:
				return &core.FileHandle{Path: move(h.Path()), Size: h.Size, Checksums: h.Checksums}
			case *SegmentHandle:
				own := *h
				own.Path = move(h.Path)
				return &own
			}
			t.Fatalf("%T", h)
			return nil
		}})
		after, err := Objects(c)
		require.NoError(t, err)
		require.Equal(t, len(before), len(after))
		for i := range after {
			require.True(t, strings.HasPrefix(after[i].Path, "hdfs://moved/"), after[i].Path)
			require.False(t, after[i].Relative)
			require.Equal(t, before[i].Size, after[i].Size)
			moved++
		}
	}
	require.Greater(t, moved, 20)
}
