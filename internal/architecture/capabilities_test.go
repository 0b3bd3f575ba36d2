package architecture

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/fstest"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

const capabilitiesFile = "docs/capabilities.md"

const capabilitiesHead = `# Capabilities

What each file system declares. Whoever needs more than that gets ` + "`errors.ErrUnsupported`" + `, never something weaker. The local
rows are those of a disk that can rename without replacing (ext4, xfs, btrfs, tmpfs, APFS); where the kernel cannot do that,
as over NFS, NoReplaceDirs is no. This page is compared with what the code declares; ` + "`make capabilities`" + ` writes it.

`

// TestCapabilities compares the table of capabilities with what the implementations declare. With -update it writes it.
func TestCapabilities(t *testing.T) {
	local := func(opts localfs.Options) core.Capabilities {
		fsys, err := localfs.Open(t.TempDir(), opts)
		require.NoError(t, err)
		defer func() { require.NoError(t, fsys.Close()) }()
		return fsys.Capabilities()
	}
	memory := memfs.New(memfs.Options{})
	table := capabilitiesHead + fstest.CapabilitiesTable([]fstest.NamedCapabilities{
		{Name: "localfs", Capabilities: local(localfs.Options{})},
		{Name: "localfs, UnsafeNoFsync", Capabilities: local(localfs.Options{UnsafeNoFsync: true})},
		{Name: "hdfsfs, native client", Capabilities: hdfsfs.Declared(hdfsfs.ClientNative)},
		{Name: "hdfsfs, library's client", Capabilities: hdfsfs.Declared(hdfsfs.ClientLibrary)},
		{Name: "memfs (tests)", Capabilities: memory.Capabilities()},
		{Name: "faultfs (tests), of memfs", Capabilities: faultfs.Wrap(memory, nil).Capabilities()},
	})
	name := path.Join(root, capabilitiesFile)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(table), 0o644))
	}
	written, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, table, string(written), "a change of capabilities is a change of the product: say so in the changelog and run `make capabilities`")
}
