package fstest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestTheCapabilitiesTableIsAligned(t *testing.T) {
	want := strings.TrimLeft(`
| File system | Durabilities                 | NoReplaceFiles | NoReplaceDirs | Sync | Replicas | DetectsCorruptReads |
|-------------|------------------------------|----------------|---------------|------|----------|---------------------|
| all         | unsynced, replicated, synced | yes            | yes           | yes  | yes      | yes                 |
| nothing     |                              | no             | no            | no   | no       | no                  |
`, "\n")
	require.Equal(t, want, CapabilitiesTable([]NamedCapabilities{
		{"all", core.Capabilities{
			Durabilities:   []core.Durability{core.Unsynced, core.Replicated, core.Synced},
			NoReplaceFiles: true, NoReplaceDirs: true, Sync: true, Replicas: true, DetectsCorruptReads: true,
		}},
		{"nothing", core.Capabilities{}},
	}))
}

func TestTheCapabilitiesTableHasAColumnForEveryCapability(t *testing.T) {
	header, _, _ := strings.Cut(CapabilitiesTable(nil), "\n")
	capabilities := reflect.TypeFor[core.Capabilities]()
	for i := range capabilities.NumField() {
		require.Contains(t, header, "| "+capabilities.Field(i).Name+" ")
	}
}
