package testenv

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// The other tests that use this job rely on its noticing lost state.
func TestTheJobOfFlinkCountsEveryNumberOnceAcrossARestore(t *testing.T) {
	for _, version := range []string{FlinkVersion, "1.20.3"} {
		flink := RequireFlink(t, version, EngineSettings{})
		dir := t.TempDir()
		var first, second struct {
			Checkpoint    string
			Savepoints    []string
			Keyed, Listed int
		}
		require.NoError(t, json.Unmarshal(flink.Call(t, "job", dir, "checkpoints=2", "savepoints=CANONICAL"), &first))
		require.Less(t, first.Keyed, 4000)
		for _, from := range []string{first.Checkpoint, first.Savepoints[0]} {
			require.NoError(t, json.Unmarshal(flink.Call(t, "job", dir, "rate=100000", "restore="+from), &second))
			require.Equal(t, 4000, second.Keyed)
			require.Equal(t, 4000, second.Listed)
		}
	}
}
