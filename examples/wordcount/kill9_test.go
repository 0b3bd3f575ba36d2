package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/demo"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/job"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/oracle"
	"github.com/hdfsckpt/hdfsckpt/fsurl"
)

// asCommand in the environment makes the test binary behave as the command, so that the tests need no second build.
const asCommand = "WORDCOUNT_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	m.Run()
}

// kills is how many kills the sweep makes: a few by default, HDFSCKPT_KILL9 says how many.
func kills(t *testing.T) int {
	text := os.Getenv("HDFSCKPT_KILL9")
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// prepareInput writes a small input and returns its root and, for every file, in the order of the chunks, its own counts.
func prepareInput(t *testing.T, files int) (root string, perChunk []map[string]uint64) {
	t.Helper()
	root = t.TempDir()
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("%04d", i))
		require.NoError(t, os.Mkdir(dir, 0o700))
		var text strings.Builder
		for j := range 400 {
			fmt.Fprintf(&text, "word%d all_%d_%d\n", (i*j)%977, i, j%50)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "input.txt"), []byte(text.String()), 0o600))
		counts, err := oracle.Count(dir, 1)
		require.NoError(t, err)
		perChunk = append(perChunk, counts)
	}
	return root, perChunk
}

// countUpTo is what the counts must be at a position: every chunk is one file.
func countUpTo(perChunk []map[string]uint64, position int64) map[string]uint64 {
	counts := map[string]uint64{}
	for i, chunk := range perChunk {
		passes := uint64(position) / uint64(len(perChunk))
		if int64(i) < position%int64(len(perChunk)) {
			passes++
		}
		if passes == 0 {
			continue
		}
		for word, count := range chunk {
			counts[word] += count * passes
		}
	}
	return counts
}

// life is one run of the job as a process.
type life struct {
	committed int64 // id of the newest checkpoint that the job acknowledged
	commits   int   // how many it acknowledged
	pointer   string
	position  int64 // that it restored
	done      bool
}

// runLife starts the job, kills it with SIGKILL after the delay, and returns what it had acknowledged by then.
func runLife(t *testing.T, base, input string, passes int64, workers int, delay time.Duration) life {
	t.Helper()
	command := exec.Command(os.Args[0], "run", "--dir", base, "--input", input, "--passes", strconv.FormatInt(passes, 10),
		"--chunk", "1", "--workers", strconv.Itoa(workers), "--interval", "15ms", "--retain", "2")
	command.Env = append(os.Environ(), asCommand+"=1")
	var complaints strings.Builder
	command.Stderr = &complaints
	command.WaitDelay = 5 * time.Second
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	timer := time.AfterFunc(delay, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	var l life
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // a line that the kill cut off acknowledges nothing
		}
		var event job.Event
		require.NoError(t, json.Unmarshal(line, &event), "line %q", line)
		switch event.Event {
		case "restored":
			l.position = event.Position
		case "committed":
			l.committed, l.pointer = event.ID, event.Pointer
			l.commits++
		case "done":
			l.done, l.pointer = true, event.Pointer
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
	err = command.Wait()
	if l.done || command.ProcessState.Success() {
		require.NoError(t, err, complaints.String())
	} else {
		require.Equal(t, "signal: killed", err.Error(), complaints.String())
	}
	return l
}

// newestCheckpoint returns the newest complete checkpoint in the job directory, 0 if there is none.
func newestCheckpoint(t *testing.T, base string) (int64, string) {
	t.Helper()
	fsys, name, err := fsurl.Open(t.Context(), base, fsurl.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, fsys.Close()) }()
	entries, err := core.ListCheckpoints(t.Context(), fsys, path.Join(name, job.JobID().String()))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, ""
	}
	require.NoError(t, err)
	newest, found := core.Latest(entries)
	if !found {
		return 0, ""
	}
	return newest.ID, newest.Completed.Pointer
}

// After every kill -9 of the whole job, at whatever moment, the newest acknowledged checkpoint must be there or a newer one,
// and must hold exactly the counts of its position.
func TestEveryAcknowledgedCheckpointSurvivesKill9(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	sweep(t, base, kills(t), 200*time.Millisecond, 700*time.Millisecond)
}

// sweep runs the job in base and kills it after a random time between the two, again and again. It returns how many
// checkpoints were acknowledged in all.
func sweep(t *testing.T, base string, kills int, shortest, longest time.Duration) (commits int) {
	const files = 60
	input, perChunk := prepareInput(t, files)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const passes = 1_000_000 // more than can be counted; the sweep ends by itself
	acknowledged, restores := int64(0), 0
	for kill := range kills {
		workers := 1 + random.IntN(3)
		delay := shortest + time.Duration(random.Int64N(int64(longest-shortest)))
		l := runLife(t, base, input, passes, workers, delay)
		acknowledged = max(acknowledged, l.committed)
		commits += l.commits
		if l.position > 0 {
			restores++
		}
		id, pointer := newestCheckpoint(t, base)
		require.GreaterOrEqual(t, id, acknowledged, "kill %d: an acknowledged checkpoint is lost", kill)
		if id == 0 {
			continue
		}
		counted, position, err := job.Result(t.Context(), pointer)
		require.NoError(t, err, "kill %d: %s", kill, pointer)
		require.NoError(t, demo.Compare(countUpTo(perChunk, position), counted), "kill %d: %s at chunk %d", kill, pointer, position)
	}
	require.Positive(t, acknowledged, "nothing was acknowledged: the delays are too short for this machine")
	t.Logf("%d kills, newest checkpoint %d, %d restores", kills, acknowledged, restores)
	return commits
}

func TestAJobThatWasKilledEndsWithTheRightCountsAndNoGarbage(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	finish(t, base, 300, 300*time.Millisecond)
}

// finish kills the job once. The next life runs to its end and leaves at most two checkpoints, one savepoint and nothing else.
func finish(t *testing.T, base string, passes int64, delay time.Duration) (last life) {
	const files = 20
	input, perChunk := prepareInput(t, files)
	first := runLife(t, base, input, passes, 2, delay)
	require.False(t, first.done)
	last = runLife(t, base, input, passes, 3, 5*time.Minute)
	require.True(t, last.done)
	counted, position, err := job.Result(t.Context(), last.pointer)
	require.NoError(t, err)
	require.EqualValues(t, files*passes, position)
	require.NoError(t, demo.Compare(countUpTo(perChunk, position), counted))

	fsys, name, err := fsurl.Open(t.Context(), base, fsurl.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, fsys.Close()) }()
	var checkpoints, epochs, savepoints int
	for entry, err := range fsys.List(t.Context(), path.Join(name, job.JobID().String())) {
		require.NoError(t, err)
		switch {
		case strings.HasPrefix(entry.Name, "chk-"):
			checkpoints++
			_, err := fsys.Stat(t.Context(), path.Join(name, job.JobID().String(), entry.Name, core.MetadataName))
			require.NoError(t, err, "an incomplete checkpoint is left behind")
		case strings.HasPrefix(entry.Name, ".epoch-"):
			epochs++
		}
	}
	require.LessOrEqual(t, checkpoints, 2)
	require.Equal(t, 1, epochs)
	for _, err := range fsys.List(t.Context(), path.Join(name, "savepoints")) {
		require.NoError(t, err)
		savepoints++
	}
	require.Equal(t, 1, savepoints)
	return last
}

func TestDemoEndsWithExactlyTheRightCounts(t *testing.T) {
	input, _ := prepareInput(t, 40)
	dir := t.TempDir()
	t.Setenv(asCommand, "1")
	var out strings.Builder
	err := run(t.Context(), []string{
		"demo", "--input", input, "--passes", "150", "--chunk", "1", "--interval", "20ms", "--kills", "5",
		"--dir", dir,
	}, &out, &out)
	t.Log(out.String())
	require.NoError(t, err)
	require.Contains(t, out.String(), "exactly right")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the demo leaves nothing behind")
}

func TestDemoDisturbsAndTellsIfThatFails(t *testing.T) {
	input, _ := prepareInput(t, 40)
	t.Setenv(asCommand, "1")
	demonstrate := func(disturbances ...string) (string, error) {
		args := []string{"demo", "--input", input, "--passes", "500", "--chunk", "1", "--interval", "20ms", "--kills", "5", "--dir", t.TempDir()}
		for _, command := range disturbances {
			args = append(args, "--disturb", command)
		}
		var out strings.Builder
		err := run(t.Context(), args, &out, &out)
		t.Log(out.String())
		return out.String(), err
	}
	out, err := demonstrate("true", "echo 1")
	require.NoError(t, err)
	require.Contains(t, out, "exactly right")
	require.Contains(t, out, ": true")
	require.Contains(t, out, ": echo 1")
	_, err = demonstrate("true", "false")
	require.ErrorContains(t, err, "false: exit status 1")
}

func TestCompareNamesTheWordsThatDiffer(t *testing.T) {
	require.NoError(t, demo.Compare(map[string]uint64{"a": 1}, map[string]uint64{"a": 1}))
	err := demo.Compare(map[string]uint64{"a": 1, "b": 2, "c": 3}, map[string]uint64{"a": 1, "b": 3, "d": 4})
	require.ErrorContains(t, err, "3 of 4 words differ")
	require.ErrorContains(t, err, `"c": 3 expected, 0 counted`)
}

func TestWrongUsageIsToldApart(t *testing.T) {
	for _, args := range [][]string{{}, {"nonsense"}, {"run"}, {"demo", "--kills", "1"}, {"result"}} {
		require.ErrorIs(t, run(t.Context(), args, io.Discard, io.Discard), errUsage, "%q", args)
	}
	require.NoError(t, run(t.Context(), []string{"--help"}, io.Discard, io.Discard))
}
