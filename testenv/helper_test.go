package testenv

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/supervisor"
)

// exit ends the goroutine, as Skip and Fatal do.
func exit() { runtime.Goexit() }

// shortTempDir is one in whose folders sockets have room.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "te") //nolint:usetesting // a socket's name has to be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// asUser makes the test binary another user of a cluster: it starts the one of the options, tells what it has, and holds it
// until its input ends.
const asUser = "HDFSCKPT_TESTENV_USER"

// told is what a user tells.
type told struct {
	NameNode   string
	Folder     supervisor.Folder
	Supervisor proc.ID
	Processes  []Process
}

func TestMain(m *testing.M) {
	options := os.Getenv(asUser)
	if options == "" {
		m.Run() // its result is the status
		return
	}
	if err := beUser(options); err != nil {
		fmt.Fprintln(os.Stderr, err) // whoever reads the output misses it
	}
}

func beUser(options string) error {
	var o Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return err
	}
	o.linger = time.Second
	ctx := context.Background()
	c, err := Start(ctx, o, func(string) {})
	if err != nil {
		return err
	}
	processes, err := c.Processes(ctx)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(told{c.NameNode(), c.folder, c.state.Supervisor, processes}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// requireLocal is Require without a cluster, for tests that start their own in another process.
func requireLocal(t *testing.T) {
	t.Helper()
	if kind := os.Getenv("HDFSCKPT_HDFS"); os.Getenv("HADOOP_CONF_DIR") != "" || kind == "none" || kind == "docker" {
		t.Skip("left out: the environment does not want a cluster to be started")
	}
	_, err := Options{}.spec(t.Context(), func(s string) { t.Log(s) })
	if isMissing(err) && !required(os.Getenv("HDFSCKPT_REQUIRE"), "hdfs") {
		t.Skipf("left out: it needs %v", err)
	}
	require.NoError(t, err)
}

// otherUser is a process that uses a cluster.
type otherUser struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

func startUser(t *testing.T, o Options) *otherUser {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	options, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), asUser+"="+string(options))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &otherUser{cmd, in, bufio.NewReader(out)}
}

func (u *otherUser) told(t *testing.T) told {
	t.Helper()
	line, err := u.out.ReadString('\n')
	require.NoError(t, err)
	var v told
	require.NoError(t, json.Unmarshal([]byte(line), &v))
	return v
}

// awaitNothing waits until neither processes nor files of a cluster are left.
func awaitNothing(ctx context.Context, v told) error {
	return supervisor.Poll(ctx, func() error {
		for _, p := range append(v.Processes, Process{Name: "supervisor", ID: v.Supervisor}) {
			if p.ID.Alive() {
				return fmt.Errorf("%s runs", p.Name)
			}
		}
		if _, err := os.Stat(string(v.Folder)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there", v.Folder)
		}
		return nil
	})
}

func supervisorDown(t *testing.T, v told) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	return supervisor.Down(ctx, v.Folder)
}
