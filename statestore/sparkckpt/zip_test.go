package sparkckpt

import (
	"archive/zip"
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// zipOf makes a snapshot with the given entries.
func zipOf(t testing.TB, entries map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range entries {
		f, err := w.Create(name)
		require.NoError(t, err)
		_, err = f.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

const emptyMetadata = "v1\n{\"sstFiles\":[],\"numKeys\":0}"

func TestASnapshotIsEmptyOnlyIfNothingInItHoldsRows(t *testing.T) {
	for name, c := range map[string]struct {
		entries map[string]string
		empty   bool
	}{
		"nothing":               {map[string]string{"metadata": emptyMetadata, "000004.log": "", "CURRENT": "MANIFEST"}, true},
		"a table":               {map[string]string{"metadata": "v1\n{\"sstFiles\":[{\"localFileName\":\"a\"}],\"numKeys\":1}"}, false},
		"a shared log":          {map[string]string{"metadata": "v1\n{\"sstFiles\":[],\"logFiles\":[{\"localFileName\":\"a\"}],\"numKeys\":0}"}, false},
		"a log in the zip":      {map[string]string{"metadata": emptyMetadata, "000004.log": "rows"}, false},
		"keys without any file": {map[string]string{"metadata": "v1\n{\"sstFiles\":[],\"numKeys\":-1}"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			data := zipOf(t, c.entries)
			s, err := readZip(bytes.NewReader(data), int64(len(data)))
			require.NoError(t, err)
			require.Equal(t, c.empty, s.Empty())
		})
	}
	data := zipOf(t, map[string]string{"CURRENT": ""})
	_, err := readZip(bytes.NewReader(data), int64(len(data)))
	require.ErrorIs(t, err, core.ErrCorrupt)
}

func FuzzRocksSnapshot(f *testing.F) {
	f.Add(zipOf(f, map[string]string{"metadata": emptyMetadata}))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := readZip(bytes.NewReader(data), int64(len(data)))
		if err != nil && !errors.Is(err, core.ErrCorrupt) && !errors.Is(err, core.ErrUnsupportedVersion) {
			t.Fatalf("%v", err)
		}
	})
}
