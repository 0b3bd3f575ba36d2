package fsurl

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

func TestURLsAreParsedAsHadoopAndFlinkWriteThem(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	local := func(name string) target { return target{scheme: "file", name: name} }
	hdfs := func(authority, name string) target { return target{scheme: "hdfs", authority: authority, name: name} }
	for _, c := range []struct {
		url       string
		defaultFS string
		want      target // the zero target: fs.ErrInvalid
	}{
		{url: "/a/b", want: local("/a/b")},
		{url: "/", want: local("/")},
		{url: "//a///b/", want: local("/a/b")},
		{url: "a/b", want: local(filepath.Join(here, "a/b"))},
		{url: "./a", want: local(filepath.Join(here, "a"))},
		{url: "../a", want: local(filepath.Join(filepath.Dir(here), "a"))},
		{url: ".", want: local(here)},
		{url: "file:/a/b", want: local("/a/b")},
		{url: "file:///a/b", want: local("/a/b")},
		{url: "file://localhost/a", want: local("/a")},
		{url: "FILE:/a", want: local("/a")},
		{url: "file:///", want: local("/")},
		{url: "file:/a b/%20+ü", want: local("/a b/%20+ü")},
		{url: "hdfs://ns1/a", want: hdfs("ns1", "/a")},
		{url: "hdfs://host:8020/a", want: hdfs("host:8020", "/a")},
		{url: "hdfs:///a", want: hdfs("", "/a")},
		{url: "/a/b", defaultFS: "hdfs://ns1", want: hdfs("ns1", "/a/b")},
		{url: "/a/b", defaultFS: "hdfs://ns1/", want: hdfs("ns1", "/a/b")},
		{url: "file:/a", defaultFS: "hdfs://ns1", want: local("/a")},
		{url: "/a", defaultFS: "file:///", want: local("/a")},
		{url: "a", defaultFS: "file:/", want: local(filepath.Join(here, "a"))},

		{url: ""},
		{url: ":"},
		{url: "://a/b"},
		{url: "file:"},
		{url: "file:a"},
		{url: "file://"},
		{url: "file://host/a"},
		{url: "hdfs://ns1"},
		{url: "s3://bucket/a"},
		{url: "C:/a"},
		{url: "1 2:/a"},
		{url: "/a:b"},
		{url: "/a\x00b"},
		{url: "/a/../b"},
		{url: "/a/./b"},
		{url: "file:/a/.."},
		{url: "hdfs://ns1/../a"},
		{url: "a/b", defaultFS: "hdfs://ns1"},
	} {
		p, err := Options{DefaultFS: c.defaultFS}.plan()
		require.NoError(t, err)
		got, err := p.parse(c.url)
		require.Equal(t, c.want, got, "%q", c.url)
		if c.want == (target{}) {
			require.ErrorIs(t, err, fs.ErrInvalid, "%q", c.url)
			continue
		}
		require.NoError(t, err, "%q", c.url)
	}
}

func TestAnUnknownSchemeIsToldTheKnownOnes(t *testing.T) {
	_, _, err := Open(context.Background(), "s3://bucket/a", Options{})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorContains(t, err, "file, hdfs")
}

func TestOptionsReportAllProblemsAtOnce(t *testing.T) {
	opts := Options{DefaultFS: "ns1", LocalBase: "/a:b", Local: localfs.Options{FileMode: 0o100}}
	for _, err := range []error{opts.Validate(), func() error {
		_, err := NewOpener(opts)
		return err
	}()} {
		require.ErrorIs(t, err, fs.ErrInvalid)
		for _, field := range []string{"DefaultFS", "LocalBase", "Local:"} {
			require.ErrorContains(t, err, "Options."+field)
		}
	}
	for _, bad := range []string{"ns1", "/a", "s3://x", "hdfs:///", "hdfs://ns1/a", "file://host/", "file:/a"} {
		require.ErrorIs(t, Options{DefaultFS: bad}.Validate(), fs.ErrInvalid, bad)
	}
	require.NoError(t, Options{}.Validate())
	_, _, err := Open(context.Background(), "/a", Options{DefaultFS: "ns1"})
	var pathErr *fs.PathError
	require.ErrorAs(t, err, &pathErr)
}

func TestTheErrorOfAnHDFSThatCannotBeOpenedNamesTheURL(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	o := newOpener(t, Options{DefaultFS: "hdfs://not an address", HDFS: hdfsfs.Options{User: "alice"}})
	for _, url := range []string{"hdfs://not an address/a", "hdfs:///a", "/a"} {
		_, _, err := o.Open(context.Background(), url)
		require.ErrorIs(t, err, fs.ErrInvalid)
		var pathErr *fs.PathError
		require.ErrorAs(t, err, &pathErr)
		require.Equal(t, url, pathErr.Path)
	}
}

func TestClosingAnOpenerEndsTheOpeningOfAnHDFSThatDoesNotAnswer(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	o, err := NewOpener(Options{HDFS: hdfsfs.Options{User: "alice", CallTimeout: 30 * time.Second}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, _, err = o.Open(ctx, "hdfs://"+listener.Addr().String()+"/a")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	begin := time.Now()
	require.NoError(t, o.Close())
	require.Less(t, time.Since(begin), 5*time.Second)
}

func TestOpenGivesALocalFileSystemAndTheNameInIt(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	ctx := context.Background()
	for _, url := range []string{"file://" + dir + "/x", "file:" + dir + "/x", dir + "/x", "x"} {
		fsys, name, err := Open(ctx, url, Options{})
		require.NoError(t, err)
		require.Equal(t, "file://", fsys.URI())
		require.NoError(t, fsys.MkdirAll(ctx, name))
		require.NoError(t, fsys.Close())
		require.DirExists(t, filepath.Join(dir, "x"))
		require.NoError(t, os.Remove(filepath.Join(dir, "x")))
		require.ErrorIs(t, fsys.MkdirAll(ctx, name), fs.ErrClosed)
	}
}

func TestNamesOutsideTheLocalBaseAreRefused(t *testing.T) {
	dir := t.TempDir()
	o := newOpener(t, Options{LocalBase: filepath.Join(dir, "base"), Local: localfs.Options{CreateBase: true}})
	fsys, name, err := o.Open(context.Background(), "file:"+dir+"/base/x")
	require.NoError(t, err)
	require.NoError(t, fsys.MkdirAll(context.Background(), name))
	for _, url := range []string{dir, "file:" + dir + "/other", dir + "/basement"} {
		_, _, err := o.Open(context.Background(), url)
		require.ErrorIs(t, err, fs.ErrInvalid, url)
	}
}

func TestAnEndedContextOpensNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o := newOpener(t, Options{LocalBase: filepath.Join(dir, "base"), Local: localfs.Options{CreateBase: true}})
	_, _, err := o.Open(ctx, dir+"/base/x")
	require.ErrorIs(t, err, context.Canceled)
	require.NoDirExists(t, filepath.Join(dir, "base"))
}

func newOpener(t *testing.T, opts Options) *Opener {
	t.Helper()
	o, err := NewOpener(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	return o
}

// counted is a file system that counts how often it is closed.
type counted struct {
	core.FileSystem
	closed atomic.Int32
	err    error
}

func (c *counted) Close() error {
	c.closed.Add(1)
	return c.err
}

func TestAnOpenerOpensEachFileSystemOnceAndClosesAll(t *testing.T) {
	o, err := NewOpener(Options{})
	require.NoError(t, err)
	broken := errors.New("broken")
	var opened atomic.Int32
	made := map[string]*counted{"file": {}, "ns1": {err: broken}, "ns2": {}}
	o.open = func(_ context.Context, t target) (FileSystem, error) {
		opened.Add(1)
		if t.scheme == "file" {
			return made["file"], nil
		}
		return made[t.authority], nil
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for url, key := range map[string]string{"/a": "file", "file:/b": "file", "hdfs://ns1/c": "ns1", "hdfs://ns2/d": "ns2"} {
				fsys, _, err := o.Open(context.Background(), url)
				if err != nil || fsys != made[key] {
					t.Errorf("%s: %v, %v", url, fsys, err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(3), opened.Load())
	require.ErrorIs(t, o.Close(), broken)
	require.NoError(t, o.Close())
	for key, fsys := range made {
		require.Equal(t, int32(1), fsys.closed.Load(), key)
	}
	_, _, err = o.Open(context.Background(), "/a")
	require.ErrorIs(t, err, fs.ErrClosed)
}

func TestAFileSystemThatCouldNotBeOpenedIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	o := newOpener(t, Options{LocalBase: filepath.Join(dir, "base")})
	url := "file:" + dir + "/base/x"
	_, _, err := o.Open(context.Background(), url)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "open "+url)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "base"), 0o700))
	_, _, err = o.Open(context.Background(), url)
	require.NoError(t, err)
}

func TestAnOpeningThatHangsHoldsNobodyAndCloseWaitsForIt(t *testing.T) {
	o, err := NewOpener(Options{})
	require.NoError(t, err)
	fsys, release := &counted{}, make(chan struct{})
	o.open = func(context.Context, target) (FileSystem, error) {
		<-release
		return fsys, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, _, err = o.Open(ctx, "/a")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	closed := make(chan error, 1)
	go func() { closed <- o.Close() }()
	select {
	case err := <-closed:
		require.Fail(t, "Close did not wait", "%v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	require.NoError(t, <-closed)
	require.Equal(t, int32(1), fsys.closed.Load())
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"/a", "a", "file:/a", "file:///a/b/", "hdfs://ns1:8020/a", "x:y", "::", "file://localhost//", "/../a", "\x00"} {
		f.Add(seed)
	}
	p, err := Options{}.plan()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, url string) {
		got, err := p.parse(url)
		if err != nil {
			require.Zero(t, got)
			return
		}
		require.Contains(t, schemes, got.scheme)
		if got.scheme == schemeFile {
			require.Empty(t, got.authority)
			require.NoError(t, core.CheckName("open", "/", got.name))
			again, err := p.parse(core.Qualify("file://", got.name))
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
	})
}

var _ io.Closer = (*Opener)(nil)
