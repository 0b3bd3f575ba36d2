package supervisor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/hadoop"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/lockfile"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// folder is one whose name is short enough for a socket.
func folder(t *testing.T) Folder {
	t.Helper()
	dir, err := os.MkdirTemp("", "sv") //nolint:usetesting // a socket's name has to be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return Folder(filepath.Join(dir, "f"))
}

func TestAFolderWhoseSocketCannotBeIsRefused(t *testing.T) {
	require.NoError(t, Folder("/tmp/x").Check())
	require.ErrorContains(t, Folder("/"+strings.Repeat("x", 100)).Check(), "14 bytes too long")
	require.ErrorContains(t, Folder("x").Check(), "not absolute")
}

func TestStateIsReadAsItWasWritten(t *testing.T) {
	f := folder(t)
	_, err := f.State()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.MkdirAll(f.cluster(), 0o700))
	want := State{
		Spec:      Spec{DataNodes: 2, Kerberos: true, Linger: time.Second, Properties: hadoop.Site{"a": "b"}},
		Processes: []Process{{Name: "nn", ID: proc.ID{PID: 7, Started: "8"}, Running: true}},
	}
	require.NoError(t, writeJSON(f.stateFile(), State{}))
	require.NoError(t, writeJSON(f.stateFile(), want))
	got, err := f.State()
	require.NoError(t, err)
	require.Equal(t, want, got)
	entries, err := os.ReadDir(f.cluster())
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing temporary is left")

	require.NoError(t, os.WriteFile(f.stateFile(), []byte("{"), 0o600))
	_, err = f.State()
	require.ErrorContains(t, err, f.stateFile())
}

func TestPollReportsTheLastAnswer(t *testing.T) {
	n := 0
	require.NoError(t, poll(t.Context(), func() error {
		if n++; n < 3 {
			return errors.New("not yet")
		}
		return nil
	}))
	require.Equal(t, 3, n)

	fatal := errors.New("never")
	require.ErrorIs(t, poll(t.Context(), func() error { return final(fatal) }), fatal)

	ctx, cancel := context.WithCancel(t.Context())
	n = 0
	err := poll(ctx, func() error {
		if n++; n < 2 {
			return errors.New("the cause")
		}
		cancel()
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "the cause")
}

// script is a program that does what the lines of a shell say.
func script(t *testing.T, lines string) func(context.Context) (string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\n"+lines+"\n"), 0o700))
	return func(context.Context) (string, error) { return name, nil }
}

func noSpec(context.Context) (Spec, error) { return Spec{}, nil }

func TestAStartThatFailsSaysWhy(t *testing.T) {
	for _, tt := range []struct {
		name, lines, want string
	}{
		{"a report", `echo '"no \"memory\""'`, `no "memory"`},
		{"no report", `exit 1`, "ended without a word"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := folder(t)
			_, err := Acquire(t.Context(), f, script(t, tt.lines), noSpec)
			require.ErrorContains(t, err, tt.want)
			for _, lock := range []string{f.startLock(), f.leaseLock(), f.aliveLock()} {
				l, err := lockfile.Try(lock, lockfile.Exclusive)
				require.NoError(t, err, "nothing is locked any more")
				require.NoError(t, l.Unlock())
			}
			require.NoError(t, Down(t.Context(), f))
			require.NoDirExists(t, string(f))
		})
	}
	unprepared := errors.New("nothing to start")
	_, err := Acquire(t.Context(), folder(t), script(t, ""), func(context.Context) (Spec, error) { return Spec{}, unprepared })
	require.ErrorIs(t, err, unprepared)
}

func TestAStartThatHangsEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Acquire(ctx, folder(t), script(t, "exec sleep 600"), noSpec)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestWithoutAClusterThereIsNobodyToOrder(t *testing.T) {
	f := folder(t)
	require.ErrorIs(t, f.Order(t.Context(), "kill", "nn"), ErrDown)
	_, err := f.Now(t.Context())
	require.ErrorIs(t, err, ErrDown)
	require.NoError(t, Down(t.Context(), f), "it is down")
}

func TestDownKillsWhatAKilledSupervisorLeft(t *testing.T) {
	starter := proc.NewStarter()
	defer starter.Close()
	left, err := starter.Start(exec.Command("sleep", "600"))
	require.NoError(t, err)
	other, err := starter.Start(exec.Command("sleep", "600"))
	require.NoError(t, err)
	f := folder(t)
	require.NoError(t, os.MkdirAll(f.cluster(), 0o700))
	reused := other.ID
	reused.Started += "0"
	require.NoError(t, writeJSON(f.stateFile(), State{Processes: []Process{{Name: "nn", ID: left.ID}, {Name: "dn1", ID: reused}}}))

	require.NoError(t, Down(t.Context(), f))
	require.ErrorContains(t, left.Result(), "killed")
	require.True(t, other.Running(), "another process with the same id is not ours")
	require.NoError(t, other.Kill())
	require.NoDirExists(t, string(f))
}

// fakeServer runs processes that only sleep.
func fakeServer(t *testing.T) (*server, context.Context) {
	t.Helper()
	f := folder(t)
	java, err := script(t, "exec sleep 600")(t.Context())
	require.NoError(t, err)
	c := &cluster{starter: proc.NewStarter(), children: map[string]*proc.Child{}, changed: func() error { return nil }}
	c.Spec.Parts.JVM.Java.Path = java
	port := 0
	c.Layout, err = hadoop.NewLayout(f.cluster(), 1, func() (int, error) { port++; return port, nil })
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(f.cluster(), "logs"), 0o700))
	require.NoError(t, c.launch("nn"))
	require.NoError(t, c.launch("dn1"))
	t.Cleanup(func() { require.NoError(t, c.end()) })
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return &server{folder: f, c: c, done: cancel}, ctx
}

// serving runs the server, and returns a channel that is closed when it has ended.
func serving(t *testing.T, s *server, ctx context.Context) <-chan struct{} { //nolint:revive // the server is what it is about
	t.Helper()
	alive, err := lockfile.Try(s.folder.aliveLock(), lockfile.Exclusive)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lease, err := s.serve(ctx, &strings.Builder{})
		if err == nil && lease != nil {
			err = lease.Unlock()
		}
		if err := errors.Join(err, alive.Unlock()); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { s.done(); <-ended })
	require.NoError(t, s.folder.awaitAnswer(t.Context()))
	return ended
}

func TestOrdersAboutProcesses(t *testing.T) {
	s, ctx := fakeServer(t)
	use, err := lockfile.Try(s.folder.leaseLock(), lockfile.Shared)
	require.NoError(t, err)
	defer func() { require.NoError(t, use.Unlock()) }()
	serving(t, s, ctx)
	look := func() Process {
		t.Helper()
		st, err := s.folder.Now(t.Context())
		require.NoError(t, err)
		p, ok := st.Process("dn1")
		require.True(t, ok)
		return p
	}
	order := func(verb string) error { return s.folder.Order(t.Context(), verb, "dn1") }

	first := look()
	require.True(t, first.Up())
	require.True(t, first.ID.Alive())
	require.NoError(t, order("stop"))
	require.True(t, look().Stopped)
	require.False(t, look().Up())
	require.NoError(t, order("cont"))
	require.True(t, look().Up())
	require.ErrorContains(t, order("start"), "runs already")
	require.NoError(t, order("stop"))
	require.NoError(t, order("kill"))
	require.Equal(t, Process{Name: "dn1", ID: first.ID, Log: first.Log}, look())
	require.False(t, first.ID.Alive())
	require.Error(t, order("stop"), "it is dead")
	require.NoError(t, order("start"))
	require.True(t, look().Up())
	require.NotEqual(t, first.ID, look().ID)

	require.NoError(t, look().ID.Kill(), "behind the supervisor's back")
	require.NoError(t, poll(t.Context(), func() error {
		if look().Running {
			return errors.New("it is thought to run")
		}
		return nil
	}))
	require.ErrorContains(t, s.folder.Order(t.Context(), "kill", "dn2"), `no process "dn2"`)
	require.Error(t, s.folder.Order(t.Context(), "dance", "dn1"))
}

func TestAClusterEndsWhenNobodyUsesItUnlessItIsKept(t *testing.T) {
	t.Run("not before its user", func(t *testing.T) {
		s, ctx := fakeServer(t)
		use, err := lockfile.Try(s.folder.leaseLock(), lockfile.Shared)
		require.NoError(t, err)
		ended := serving(t, s, ctx)
		select {
		case <-ended:
			t.Fatal("it ended while it was used")
		case <-time.After(100 * time.Millisecond):
		}
		require.NoError(t, use.Unlock())
		<-ended
	})
	t.Run("kept", func(t *testing.T) {
		s, ctx := fakeServer(t)
		use, err := lockfile.Try(s.folder.leaseLock(), lockfile.Shared)
		require.NoError(t, err)
		ended := serving(t, s, ctx)
		require.NoError(t, s.folder.Order(t.Context(), "keep", ""))
		require.NoError(t, use.Unlock())
		select {
		case <-ended:
			t.Fatal("it ended although it was kept")
		case <-time.After(100 * time.Millisecond):
		}
		require.NoError(t, s.folder.Order(t.Context(), "down", ""))
		<-ended
	})
}
