package ops

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

const (
	benchFiles    = 8
	benchFileSize = 32 << 20
)

// BenchmarkVerifyDeep verifies a checkpoint of 256 MiB in the page cache with one worker and, in the same run and alternating
// with it, only reads the same files. The metric "plain-ratio" is the time of the verification divided by that of the reading:
// below 1 is faster.
func BenchmarkVerifyDeep(b *testing.B) {
	for name, checksums := range map[string]bool{"checksums=yes": true, "checksums=no": false} {
		b.Run(name, func(b *testing.B) {
			fsys, pointer := benchCheckpoint(b, checksums)
			open := core.OnlyOn(fsys)
			var ours, plain time.Duration
			for b.Loop() {
				plain += readPlainly(b, pointer)
				begin := time.Now()
				v, problems := Verify(b.Context(), open, []string{pointer}, VerifyOptions{Deep: true, Parallel: 1})
				ours += time.Since(begin)
				require.Empty(b, problems)
				require.Zero(b, v.ExitCode())
			}
			b.ReportMetric(float64(ours)/float64(plain), "plain-ratio")
			b.ReportMetric(float64(benchFiles*benchFileSize)*float64(b.N)/ours.Seconds()/(1<<20), "verify-MiB/s")
		})
	}
}

func benchCheckpoint(b *testing.B, checksums bool) (core.FileSystem, string) {
	b.Helper()
	root, err := filepath.EvalSymlinks(b.TempDir())
	require.NoError(b, err)
	fsys, err := localfs.Open(root, localfs.Options{UnsafeNoFsync: true})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, fsys.Close()) })
	storage, err := core.NewStorage(fsys, root, core.JobIDOf("bench"), core.Options{})
	require.NoError(b, err)
	owner, err := storage.Claim(b.Context())
	require.NoError(b, err)
	location, err := owner.Begin(b.Context(), 1)
	require.NoError(b, err)
	operator := metadata.OperatorState{ID: metadata.OperatorID{1}, Parallelism: benchFiles, MaxParallelism: benchFiles}
	for i := range benchFiles {
		stream := location.CreateStateStream(b.Context(), core.Exclusive)
		_, err := stream.Write(make([]byte, benchFileSize))
		require.NoError(b, err)
		handle, err := stream.CloseAndGetHandle()
		require.NoError(b, err)
		file, ok := handle.(*core.RelativeFileHandle)
		require.True(b, ok)
		if !checksums {
			file.Checksums = nil
		}
		operator.Subtasks = append(operator.Subtasks, metadata.Subtask{
			Index: i, State: &metadata.SubtaskState{ManagedOperator: metadata.NewOperatorHandle(nil, file)},
		})
	}
	stream, err := location.CreateMetadataStream(b.Context())
	require.NoError(b, err)
	require.NoError(b, metadata.Write(stream, &metadata.Checkpoint{ID: 1, Operators: []metadata.OperatorState{operator}},
		metadata.WriteOptions{Footer: &metadata.Footer{}}))
	completed, err := stream.CloseAndFinalize()
	require.NoError(b, err)
	return fsys, completed.Pointer
}

// readPlainly returns how long it takes to read all files of a checkpoint.
func readPlainly(b *testing.B, pointer string) time.Duration {
	b.Helper()
	_, dir, err := core.SplitQualified(pointer)
	require.NoError(b, err)
	entries, err := os.ReadDir(dir)
	require.NoError(b, err)
	buffer := make([]byte, core.ChecksumChunk)
	begin := time.Now()
	for _, entry := range entries {
		file, err := os.Open(filepath.Join(dir, entry.Name()))
		require.NoError(b, err)
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, file, buffer)
		require.NoError(b, err)
		require.NoError(b, file.Close())
	}
	return time.Since(begin)
}
