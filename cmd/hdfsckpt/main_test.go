package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// program is the command as users run it.
var program string

func TestMain(m *testing.M) {
	os.Exit(run(m)) //nolint:forbidigo // the exit code of the tests
}

// helperEnv tells a test that it runs in a process of its own for another test, with the built command.
const helperEnv = "HDFSCKPT_TEST_HELPER"

func run(m *testing.M) int {
	if program = os.Getenv(helperEnv); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "hdfsckpt-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "hdfsckpt")
	build := exec.Command("go", "build", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// checkpoint makes one whose one file has the given size and no bytes on the disk.
func checkpoint(t *testing.T, size int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "chk-1")
	require.NoError(t, os.Mkdir(dir, 0o700))
	data, err := metadata.Append(nil, &metadata.Checkpoint{ID: 1, Operators: []metadata.OperatorState{{
		ID: metadata.OperatorID{1}, Parallelism: 1, MaxParallelism: 1,
		Subtasks: []metadata.Subtask{{State: &metadata.SubtaskState{
			ManagedOperator: metadata.NewOperatorHandle(nil, &core.RelativeFileHandle{Name: "state", Size: size}),
		}}},
	}}}, metadata.WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, core.MetadataName), data, 0o600))
	file, err := os.Create(filepath.Join(dir, "state"))
	require.NoError(t, err)
	require.NoError(t, file.Truncate(size))
	require.NoError(t, file.Close())
	return dir
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	require.NoError(t, err)
	return 0
}

func TestExitCodes(t *testing.T) {
	sound, short := checkpoint(t, 1000), checkpoint(t, 1000)
	require.NoError(t, os.Truncate(filepath.Join(short, "state"), 999))
	for _, tt := range []struct {
		args []string
		exit int
	}{
		{[]string{}, 0},
		{[]string{"--version"}, 0},
		{[]string{"ls", sound}, 0},
		{[]string{"verify", "--deep", sound}, 0},
		{[]string{"verify", short}, 1},
		{[]string{"latest", t.TempDir()}, 1},
		{[]string{"dispose", "--yes", sound}, 1},
		{[]string{"verify"}, 2},
		{[]string{"--wrong"}, 2},
		{[]string{"ls", filepath.Join(sound, "nowhere")}, 3},
		{[]string{"inspect", "nfs://host/a"}, 3},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			cmd := exec.Command(program, tt.args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			require.Equal(t, tt.exit, exitCode(t, cmd.Run()), stderr.String())
			// Findings are a result; everything else is an error.
			require.Equal(t, tt.exit == 0 || tt.args[0] == "verify" && tt.exit == 1, stderr.Len() == 0, stderr.String())

			out, err := exec.Command(program, append(tt.args, "--json")...).Output()
			require.Equal(t, tt.exit, exitCode(t, err))
			if len(tt.args) > 0 {
				require.True(t, json.Valid(out), "%s", out)
			}
		})
	}
}

func TestRelativePathsBeginAtTheWorkingDirectory(t *testing.T) {
	dir := checkpoint(t, 10)
	cmd := exec.Command(program, "verify", filepath.Base(dir))
	cmd.Dir = filepath.Dir(dir)
	require.NoError(t, cmd.Run())
}

func TestInterruptEndsTheCommandInAnOrderlyWay(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := exec.Command(program, "verify", "--deep", "--progress", checkpoint(t, 1<<40))
		stderr, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(stderr)
		first, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, first, "0/1 objects, ")
		require.NoError(t, cmd.Process.Signal(signal))
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		require.Contains(t, string(rest), "hdfsckpt: interrupted\n")
		require.Equal(t, 130, exitCode(t, cmd.Wait()))
	}
}

func TestClosedPipeEndsTheCommandQuietly(t *testing.T) {
	dir := checkpoint(t, 10)
	for _, args := range [][]string{{"inspect", dir}, {"ls", "--json", dir}, {"--help"}, {"completion", "bash"}} {
		reader, writer, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, reader.Close())
		cmd := exec.Command(program, args...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = writer, &stderr
		require.Equal(t, 141, exitCode(t, cmd.Run()), args)
		require.Empty(t, stderr.String())
		require.NoError(t, writer.Close())
	}
}
