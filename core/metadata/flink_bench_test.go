package metadata

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// BenchmarkBesideFlink reads and writes the file of 100 operators of 1,000 subtasks here and by Flink's own classes, in one
// run, and reports how many times faster ours are.
func BenchmarkBesideFlink(b *testing.B) {
	flink := testenv.RequireFlink(b, testenv.FlinkVersion, testenv.EngineSettings{Heap: "3g", Measured: true})
	c := large(100, 1000)
	dir := b.TempDir()
	name := filepath.Join(dir, "_metadata")
	data, err := Append(nil, c, WriteOptions{Version: 6})
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(name, data, 0o600))
	theirs := make(map[string][]float64)
	require.NoError(b, json.Unmarshal(flink.Call(b, "bench", name, "file://"+dir+"/by-flink", "5"), &theirs))

	ours := map[string]func() error{
		"parse": func() error { _, err := Parse(data, ""); return err },
		"write": func() error { _, err := Append(make([]byte, 0, len(data)), c, WriteOptions{Version: 6}); return err },
		"read_stream": func() error {
			data, err := os.ReadFile(name)
			if err == nil {
				_, err = Parse(data, "")
			}
			return err
		},
		"write_stream": func() error {
			f, err := os.Create(filepath.Join(dir, "by-us"))
			if err != nil {
				return err
			}
			if err := Write(f, c, WriteOptions{Version: 6}); err != nil {
				return err
			}
			return f.Close()
		},
	}
	for b.Loop() {
		for what, do := range ours {
			ms := best(b, do)
			b.ReportMetric(slices.Min(theirs[what])/ms, what+"-times-faster")
			b.Logf("%s: Flink %.1f ms, here %.1f ms", what, slices.Min(theirs[what]), ms)
		}
	}
}

// best is the shortest of five times, in milliseconds.
func best(b *testing.B, do func() error) float64 {
	shortest := time.Duration(1<<63 - 1)
	for range 5 {
		start := time.Now()
		require.NoError(b, do())
		shortest = min(shortest, time.Since(start))
	}
	return float64(shortest) / float64(time.Millisecond)
}
