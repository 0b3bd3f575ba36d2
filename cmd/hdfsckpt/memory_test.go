//go:build !race

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// manyEnv is the number of objects; the default is small enough for every run of the tests.
const manyEnv = "HDFSCKPT_MANY_OBJECTS"

const defaultObjects = 100_000

// mostMemory is what the command may take for n objects: for a million of them less than 256 MiB. verify also has the findings that
// it lists.
func mostMemory(verb string, n int) int64 {
	fixed := int64(48 << 20)
	if verb == "verify" {
		fixed = 72 << 20
	}
	return fixed + 180*int64(n)
}

// manyObjects writes checkpoints with n objects: as subtasks of ten files each, half of which both checkpoints share. With sums the
// files have checksums, as those of this project have. With files the files are there, without bytes.
func manyObjects(t *testing.T, n int, sums, files bool) (jobDir string) {
	t.Helper()
	const perSubtask, subtasks = 10, 1000
	jobDir = filepath.Join(t.TempDir(), core.JobIDOf("many").String())
	for id := 1; id <= 2; id++ {
		c := &metadata.Checkpoint{ID: int64(id), Properties: metadata.CheckpointProperties(metadata.RetainOnCancellation)}
		for number := range (n + perSubtask*subtasks - 1) / (perSubtask * subtasks) {
			o := metadata.OperatorState{
				Name: fmt.Sprint("operator ", number), UID: fmt.Sprint("uid-", number), ID: metadata.OperatorID{byte(number >> 8), byte(number)},
				Parallelism: subtasks, MaxParallelism: metadata.MaxKeyGroups,
			}
			for index := range subtasks {
				o.Subtasks = append(o.Subtasks, metadata.Subtask{Index: index, State: &metadata.SubtaskState{
					ManagedKeyed: manyFiles(t, jobDir, id, number*subtasks+index, sums, files),
				}})
			}
			c.Operators = append(c.Operators, o)
		}
		opts := metadata.WriteOptions{Version: 4}
		if sums {
			opts.Footer = &metadata.Footer{Created: time.Unix(1, 0), Kind: metadata.KindCheckpoint}
		}
		dir := filepath.Join(jobDir, core.CheckpointDirName(int64(id)))
		require.NoError(t, os.MkdirAll(dir, 0o700))
		file, err := os.Create(filepath.Join(dir, core.MetadataName))
		require.NoError(t, err)
		require.NoError(t, metadata.Write(file, c, opts))
		require.NoError(t, file.Close())
	}
	return jobDir
}

func manyFiles(t *testing.T, jobDir string, id, subtask int, sums, files bool) *metadata.IncrementalHandle {
	t.Helper()
	size := int64(1000)
	if files {
		size = 0
	}
	file := func(shared bool, n int) core.StreamHandle {
		name := fmt.Sprintf("%08x-0000-4000-8000-%012x", subtask, n)
		var checksums *core.Checksums
		if sums {
			checksums = &core.Checksums{ChunkSize: core.ChecksumChunk, Sums: []uint32{uint32(n)}[:min(size, 1)]}
		}
		if files {
			dir := core.CheckpointDirName(int64(id))
			if shared {
				dir = "shared"
			}
			require.NoError(t, os.MkdirAll(filepath.Join(jobDir, dir), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(jobDir, dir, name), nil, 0o600))
		}
		if shared {
			return &core.FileHandle{Path: "file:" + jobDir + "/shared/" + name, Size: size, Checksums: checksums}
		}
		return &core.RelativeFileHandle{Name: name, Size: size, Checksums: checksums}
	}
	h := &metadata.IncrementalHandle{
		CheckpointID: int64(id), BackendID: "00000000-0000-4000-8000-000000000000", Range: metadata.KeyGroupRange{Start: 0, Count: 32},
		PersistedSize: 5 * size, Meta: file(false, 0), ID: "00000000-0000-4000-8000-000000000001",
	}
	for i := 1; i < 5; i++ {
		h.Private = append(h.Private, metadata.NamedFile{LocalPath: fmt.Sprint("MANIFEST-", i), Handle: file(false, i)})
	}
	for i := 5; i < 10; i++ {
		h.Shared = append(h.Shared, metadata.NamedFile{LocalPath: fmt.Sprintf("%06d.sst", i), Handle: file(true, i)})
	}
	return h
}

// measured is what a run of the command took.
type measured struct {
	Exit   int
	Peak   int64
	Wall   time.Duration
	Output string
}

// TestInAProcessOfItsOwn runs the command for measure: the largest memory of a process counts from when its parent was copied for it,
// so the parent must be small.
func TestInAProcessOfItsOwn(t *testing.T) {
	if os.Getenv(helperEnv) == "" {
		t.Skip("it is a part of another test")
	}
	args := flag.Args()
	output, err := os.Create(args[0])
	require.NoError(t, err)
	cmd := exec.Command(program, args[1:]...)
	cmd.Stdout, cmd.Stderr = output, os.Stderr
	begin := time.Now()
	err = cmd.Run()
	var exited *exec.ExitError
	if !errors.As(err, &exited) {
		require.NoError(t, err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	require.True(t, ok)
	peak := int64(usage.Maxrss)
	if runtime.GOOS == "linux" {
		peak <<= 10 // there it is in KiB
	}
	result, err := json.Marshal(measured{Exit: cmd.ProcessState.ExitCode(), Peak: peak, Wall: time.Since(begin)})
	require.NoError(t, err)
	require.NoError(t, output.Close())
	require.NoError(t, os.WriteFile(args[0]+".measured", result, 0o600))
}

// measure runs the command in a directory and returns what it took.
func measure(t *testing.T, dir string, args ...string) measured {
	t.Helper()
	output := filepath.Join(t.TempDir(), "output")
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestInAProcessOfItsOwn$", "--", output}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), helperEnv+"="+program)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	data, err := os.ReadFile(output + ".measured")
	require.NoError(t, err)
	m := measured{}
	require.NoError(t, json.Unmarshal(data, &m))
	m.Output = output
	t.Logf("%s: %d MiB, %v", args[0], m.Peak>>20, m.Wall.Round(time.Millisecond))
	return m
}

func TestMemoryDoesNotGrowWithTheMetadata(t *testing.T) {
	n := defaultObjects
	if text := os.Getenv(manyEnv); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	for name, tt := range map[string]struct {
		n           int
		sums, files bool
		runs        [][]string
	}{
		"as Flink writes it": {n: n, runs: [][]string{{"inspect", "chk-1"}, {"verify", "chk-1"}}},
		"with checksums": {n: n, sums: true, runs: [][]string{
			{"ls", "."}, {"latest", "."}, {"inspect", "chk-1"}, {"diff", "chk-1", "chk-2"}, {"verify", "chk-1"},
		}},
		"with all files": {n: n / 10, sums: true, files: true, runs: [][]string{{"verify", "--deep", "chk-1", "chk-2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			jobDir := manyObjects(t, tt.n, tt.sums, tt.files)
			info, err := os.Stat(filepath.Join(jobDir, "chk-1", core.MetadataName))
			require.NoError(t, err)
			t.Logf("%d objects, metadata of %d KiB", tt.n, info.Size()>>10)
			for _, run := range tt.runs {
				most := mostMemory(run[0], tt.n)
				m := measure(t, jobDir, append(run, "--json")...)
				exit := 0
				if run[0] == "verify" && !tt.files {
					exit = 1
				}
				require.Equal(t, exit, m.Exit)
				out, err := os.ReadFile(m.Output)
				require.NoError(t, err)
				require.True(t, json.Valid(out))
				require.LessOrEqual(t, m.Peak, most, "%v", run)
			}
		})
	}
}
