package corpus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/corpus"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/oracle"
)

func writeInput(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return root
}

func TestEveryChunkSizeCountsTheSameWords(t *testing.T) {
	files := map[string]string{"image.png": "not text"}
	for i := range 20 {
		files[fmt.Sprintf("d%d/f%d.go", i%3, i)] = fmt.Sprintf("package p%d\n// größe x_1 x_1 %d", i, i)
	}
	root := writeInput(t, files)
	expected, err := oracle.Count(root, 1)
	require.NoError(t, err)
	for _, chunkBytes := range []int64{1, 50, 100, 1 << 20} {
		c, err := corpus.Scan(root, chunkBytes)
		require.NoError(t, err)
		require.Equal(t, 20, c.Files())
		counted := map[string]uint64{}
		for i := range c.Chunks() {
			text, err := c.Read(i, nil)
			require.NoError(t, err)
			corpus.Words(text, func(word []byte) { counted[string(word)]++ })
		}
		require.Equal(t, expected, counted, "chunks of %d bytes", chunkBytes)
	}
}

func TestAnotherInputHasAnotherFingerprint(t *testing.T) {
	scan := func(root string, chunkBytes int64) *corpus.Corpus {
		c, err := corpus.Scan(root, chunkBytes)
		require.NoError(t, err)
		return c
	}
	files := map[string]string{"a.go": "one", "b.go": "two"}
	first := scan(writeInput(t, files), 1)
	require.Equal(t, first.Fingerprint(), scan(writeInput(t, files), 1).Fingerprint())
	require.NotEqual(t, first.Fingerprint(), scan(writeInput(t, files), 100).Fingerprint(), "other chunks")
	require.NotEqual(t, first.Fingerprint(), scan(writeInput(t, map[string]string{"a.go": "one", "b.go": "three"}), 1).Fingerprint())
}

func TestAChangedFileIsRefused(t *testing.T) {
	root := writeInput(t, map[string]string{"a.go": "one"})
	c, err := corpus.Scan(root, 1)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("longer"), 0o600))
	_, err = c.Read(0, nil)
	require.ErrorContains(t, err, "changed its size")
}

func TestAnInputWithoutTextIsRefused(t *testing.T) {
	_, err := corpus.Scan(t.TempDir(), 1)
	require.ErrorContains(t, err, "no text files")
}

// FuzzWords compares the two ways of finding words, which share no code.
func FuzzWords(f *testing.F) {
	f.Add([]byte("package main // größe x_1\x00\xff日本 9"))
	f.Fuzz(func(t *testing.T, text []byte) {
		root := writeInput(t, map[string]string{"x.txt": string(text)})
		expected, err := oracle.Count(root, 1)
		require.NoError(t, err)
		counted := map[string]uint64{}
		corpus.Words(text, func(word []byte) { counted[string(word)]++ })
		require.Equal(t, expected, counted)
	})
}
