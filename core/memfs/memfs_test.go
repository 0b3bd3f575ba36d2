package memfs_test

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func TestTheZeroOptionsAreComplete(t *testing.T) {
	f := memfs.New(memfs.Options{})
	require.Equal(t, "mem://", f.URI())
	require.Equal(t, core.Capabilities{
		Durabilities:   []core.Durability{core.Unsynced, core.Synced},
		NoReplaceFiles: true, NoReplaceDirs: true, Sync: true,
	}, f.Capabilities())
	require.NoError(t, f.MkdirAll(t.Context(), "/a"))
}

func TestOptionsAreKept(t *testing.T) {
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	caps := core.Capabilities{Durabilities: []core.Durability{core.Replicated}, Replicas: true}
	f := memfs.New(memfs.Options{URI: "hdfs://ns1", Base: "/a/b", Capabilities: &caps, Now: func() time.Time { return now }})
	caps.Durabilities[0] = core.Synced
	require.Equal(t, []core.Durability{core.Replicated}, f.Capabilities().Durabilities)
	require.Equal(t, "hdfs://ns1", f.URI())
	info, err := f.Stat(t.Context(), "/a/b")
	require.NoError(t, err)
	require.True(t, info.IsDir())
	require.Equal(t, now, info.ModTime)
	_, err = f.Stat(t.Context(), "/a")
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.Equal(t, "hdfs://ns1", f.CrashClone(memfs.CrashConfig{}).URI())
	_, err = f.CrashClone(memfs.CrashConfig{}).Stat(t.Context(), "/a/b")
	require.NoError(t, err, "the base survives")
}

func TestTheBaseCannotBeRemoved(t *testing.T) {
	f := memfs.New(memfs.Options{Base: "/base"})
	require.ErrorIs(t, f.Remove(t.Context(), "/base"), fs.ErrInvalid)
	require.ErrorIs(t, f.RemoveAll(t.Context(), "/base"), fs.ErrInvalid)
	require.ErrorIs(t, f.Rename(t.Context(), "/base", "/base/x", core.RenameReplace), fs.ErrInvalid)
	_, err := f.Create(t.Context(), "/base", core.CreateOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
}

func TestTooFewReplicasMakeCloseUnavailable(t *testing.T) {
	caps := core.Capabilities{Durabilities: []core.Durability{core.Replicated}, Replicas: true}
	f := memfs.New(memfs.Options{Capabilities: &caps})
	for replicas, want := range []error{nil, nil, nil, nil, core.ErrUnavailable} {
		w, err := f.Create(t.Context(), fmt.Sprintf("/file-%d", replicas), core.CreateOptions{MinReplicas: replicas})
		require.NoError(t, err)
		require.ErrorIs(t, w.Close(), want)
		require.NoError(t, w.Abort())
	}
	require.Len(t, f.Tree(), 4)
	_, err := f.Create(t.Context(), "/file", core.CreateOptions{MinReplicas: -1})
	require.ErrorIs(t, err, fs.ErrInvalid)
}

func TestOpenFilesListsWhatHasNotEnded(t *testing.T) {
	s := newScript(t)
	s.write("/a", "abc", core.Synced)
	require.Empty(t, s.OpenFiles())
	r, err := s.Open(s.ctx, "/a")
	require.NoError(t, err)
	committed := s.create("/b", "", core.Synced)
	aborted := s.create("/c", "", core.Synced)
	ctx, cancel := context.WithCancel(t.Context())
	failed, err := s.Create(ctx, "/d", core.CreateOptions{})
	require.NoError(t, err)
	cancel()
	require.Equal(t, []string{"read /a", "write /b", "write /c", "write /d"}, s.OpenFiles())
	require.NoError(t, r.Close())
	require.NoError(t, committed.Close())
	require.NoError(t, aborted.Abort())
	require.Equal(t, []string{"write /d"}, s.OpenFiles())
	require.Error(t, failed.Close())
	require.Empty(t, s.OpenFiles())
}

func TestTreeListsEverythingBelowTheBase(t *testing.T) {
	f := memfs.New(memfs.Options{Base: "/base"})
	s := script{f, t, t.Context()}
	s.mkdir("/base/b/c")
	s.mkdir("/base/empty")
	s.write("/base/b/c/file", "12345", core.Synced)
	s.write("/base/a", "", core.Synced)
	require.Equal(t, []string{"/base/a 0", "/base/b/", "/base/b/c/", "/base/b/c/file 5", "/base/empty/"}, f.Tree())
}

func TestAContextThatEndsWithinCloseFailsIt(t *testing.T) {
	s := newScript(t)
	ctx, cancel := context.WithCancel(t.Context())
	w, err := s.Create(ctx, "/a", core.CreateOptions{})
	require.NoError(t, err)
	s.OnMutation(func(m memfs.Mutation) {
		if m.Op == memfs.OpClose && m.Step == memfs.DataDurable {
			cancel()
		}
	})
	require.ErrorIs(t, w.Close(), context.Canceled)
	require.ErrorIs(t, w.Close(), context.Canceled)
	require.NoError(t, w.Abort())
	require.Empty(t, s.Tree())
}

func TestAbortWithinCloseWins(t *testing.T) {
	s := newScript(t)
	w := s.create("/a", "abc", core.Synced)
	s.OnMutation(func(m memfs.Mutation) {
		if m.Op == memfs.OpClose && m.Step == memfs.DataDurable {
			require.NoError(t, w.Abort())
		}
	})
	require.ErrorIs(t, w.Close(), fs.ErrClosed)
	require.Empty(t, s.Tree())
}

func TestListNoticesThatItsDirectoryWasReplaced(t *testing.T) {
	for name, replace := range map[string]func(s script){
		"removed":              func(s script) { s.removeAll("/dir") },
		"moved":                func(s script) { s.rename("/dir", "/moved", core.RenameNoReplace) },
		"moved and made again": func(s script) { s.rename("/dir", "/moved", core.RenameNoReplace); s.mkdir("/dir") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			s.mkdir("/dir")
			for i := range 1500 {
				s.write(fmt.Sprintf("/dir/%04d", i), "", core.Unsynced)
			}
			seen := 0
			var failure error
			for _, err := range s.List(s.ctx, "/dir") {
				if err != nil {
					failure = err
					break
				}
				if seen++; seen == 10 {
					replace(s)
				}
			}
			require.ErrorIs(t, failure, fs.ErrNotExist)
			require.Equal(t, 1000, seen)
		})
	}
}
