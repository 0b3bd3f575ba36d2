package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

var update = flag.Bool("update", false, "write the golden files")

// taken is when all checkpoints of the tests were taken, and now is the time of the command's clock.
var (
	taken = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	now   = taken.Add(26*time.Hour + 5*time.Minute)
)

// rig runs the command in the process of the test.
type rig struct {
	t *testing.T
	// root is where the trees of the test are; in golden files it is /ckpt.
	root string
	fsys core.FileSystem
	env  map[string]string
	// adjust changes the program before it runs.
	adjust func(*Program)
}

const rootLength = 250

func newRig(t *testing.T) *rig {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	// The metadata holds paths, so its size is the same in every run only if theirs is.
	root += "/" + strings.Repeat("x", max(1, rootLength-1-len(root)))
	require.NoError(t, os.Mkdir(root, 0o700))
	fsys, err := localfs.Open("/", localfs.Options{UnsafeNoFsync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.Close()) })
	return &rig{t: t, root: root, fsys: fsys, env: map[string]string{}}
}

// result is what a run of the command left.
type result struct {
	code           int
	stdout, stderr string
}

func (r *rig) run(args ...string) result { return r.runContext(r.t.Context(), args...) }

func (r *rig) runContext(ctx context.Context, args ...string) result {
	var stdout, stderr bytes.Buffer
	p := Program{
		Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Getenv: func(name string) string { return r.env[name] },
		Getwd:  func() (string, error) { return r.root, nil },
		Now:    func() time.Time { return now },
		Connect: func(hdfsfs.Options) (core.Opener, io.Closer, error) {
			return core.OnlyOn(r.fsys), io.NopCloser(nil), nil
		},
		Cluster: func(context.Context, string, hdfsfs.Options) *ops.Cluster { return nil },
		Version: Version{Release: "v1.2.3", Go: "go1.26", Platform: "linux/amd64"},
	}
	if r.adjust != nil {
		r.adjust(&p)
	}
	code := Run(ctx, p)
	return result{code: code, stdout: r.neutral(stdout.String()), stderr: r.neutral(stderr.String())}
}

// probeName is the directory of doctor's probe.
var probeName = regexp.MustCompile(`\.hdfsckpt-doctor-[a-z0-9]+`)

// neutral replaces what differs from run to run.
func (r *rig) neutral(output string) string {
	return probeName.ReplaceAllString(strings.ReplaceAll(output, r.root, "/ckpt"), ".hdfsckpt-doctor-…")
}

// golden compares what a run left with a golden file.
func (r *rig) golden(name string, args ...string) result {
	r.t.Helper()
	got := r.run(args...)
	var b strings.Builder
	b.WriteString("$ hdfsckpt")
	for _, arg := range args {
		b.WriteString(" " + r.neutral(arg))
	}
	b.WriteString("\n" + got.stdout)
	if got.stderr != "" {
		b.WriteString("--- standard error\n" + got.stderr)
	}
	b.WriteString("--- exit code " + string(must(json.Marshal(got.code))) + "\n")
	file := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(r.t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(r.t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(r.t, err)
	require.Equal(r.t, string(want), b.String())
	return got
}

// document is a Document whose result is not decoded yet.
type document struct {
	Format   string           `json:"format"`
	Version  int              `json:"version"`
	ExitCode int              `json:"exit_code"`
	Errors   []report.Problem `json:"errors"`
	Result   json.RawMessage  `json:"result"`
}

// json runs a verb with --json, checks the form of what it writes, and decodes its result.
func (r *rig) json(into any, args ...string) document {
	r.t.Helper()
	return r.decode(r.run(append(args, "--json")...), into)
}

func (r *rig) decode(got result, into any) document {
	r.t.Helper()
	require.Empty(r.t, got.stderr, "with --json everything is in the document")
	decoder := json.NewDecoder(strings.NewReader(got.stdout))
	var d document
	require.NoError(r.t, decoder.Decode(&d), got.stdout)
	require.ErrorIs(r.t, decoder.Decode(new(any)), io.EOF, "one document and nothing else")
	require.Equal(r.t, got.code, d.ExitCode)
	require.Equal(r.t, 1, d.Version)
	require.NotNil(r.t, d.Errors)
	if into != nil {
		require.NoError(r.t, json.Unmarshal(d.Result, into))
	}
	return d
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// path is a path below the root of the trees.
func (r *rig) path(elements ...string) string {
	return filepath.Join(append([]string{r.root}, elements...)...)
}

// copyFlink copies a tree of a Flink job to the root.
func (r *rig) copyFlink(name string) {
	r.t.Helper()
	require.NoError(r.t, os.CopyFS(r.path(name), os.DirFS(filepath.Join("testdata", "flink", name))))
	r.age()
}

// age gives all files and directories of the trees the time taken.
func (r *rig) age() {
	r.t.Helper()
	require.NoError(r.t, filepath.WalkDir(r.root, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(name, taken, taken)
	}))
}

// snapshot lists everything below the root with sizes, modes and times.
func (r *rig) snapshot() []string {
	r.t.Helper()
	var seen []string
	require.NoError(r.t, filepath.WalkDir(r.root, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(name)
		if err == nil {
			seen = append(seen, strings.Join([]string{name, info.Mode().String(), info.ModTime().String(), string(must(json.Marshal(info.Size())))}, " "))
		}
		return err
	}))
	return seen
}
