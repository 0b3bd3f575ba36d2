package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/testenv"
)

// A file of more than one block, of which the last one ends in the middle of a chunk.
var halfWritten = strings.Repeat("synced bytes ", 100_003)

func leaseRig(t *testing.T) (*testenv.Cluster, *FS, func() *racer) {
	c := testenv.Require(t, testenv.Options{})
	o := optionsFor(c, "alice")
	o.Client, o.BlockSize = ClientNative, 1<<20
	return c, openOn(t, c, o), func() *racer {
		return startRacer(t, racerSetUp{c.NameNode(), c.ConfDir(), "alice", 1 << 20})
	}
}

// requireSynced requires what a writer had synced, whatever else is there.
func requireSynced(t *testing.T, ctx context.Context, f *FS, name string) {
	t.Helper()
	got, err := get(ctx, f, name)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(got), halfWritten), "%d bytes that are others", len(got))
}

// A process is killed while it writes; another one gets at the name, or at what was synced.
func TestTheNameOfAWriterThatWasKilledCanBeHad(t *testing.T) {
	c, f, start := leaseRig(t)
	replaced := func(t *testing.T, ctx context.Context, name string) {
		t.Helper()
		got, err := get(ctx, f, name)
		require.NoError(t, err)
		require.Equal(t, "of another", string(got))
	}
	for _, tt := range []struct {
		what string
		take func(t *testing.T, ctx context.Context, name string)
	}{
		{"Create says that it is taken", func(t *testing.T, ctx context.Context, name string) {
			for range 3 {
				_, err := f.Create(ctx, name, core.CreateOptions{})
				require.ErrorIs(t, err, fs.ErrExist)
			}
			requireSynced(t, ctx, f, name)
		}},
		{"Open reads what was synced", func(t *testing.T, ctx context.Context, name string) {
			requireSynced(t, ctx, f, name)
		}},
		{"Remove, then Create", func(t *testing.T, ctx context.Context, name string) {
			require.NoError(t, f.Remove(ctx, name))
			require.NoError(t, put(ctx, f, name, []byte("of another")))
			replaced(t, ctx, name)
		}},
		{"RemoveAll of the directory", func(t *testing.T, ctx context.Context, name string) {
			dir := name[:strings.LastIndex(name, "/")]
			require.NoError(t, f.RemoveAll(ctx, dir))
			require.NoError(t, f.MkdirAll(ctx, dir))
			require.NoError(t, put(ctx, f, name, []byte("of another")))
			replaced(t, ctx, name)
		}},
		{"RenameReplace onto it", func(t *testing.T, ctx context.Context, name string) {
			require.NoError(t, put(ctx, f, name+"-new", []byte("of another")))
			require.ErrorIs(t, f.Rename(ctx, name+"-new", name, core.RenameNoReplace), fs.ErrExist)
			require.NoError(t, f.Rename(ctx, name+"-new", name, core.RenameReplace))
			replaced(t, ctx, name)
		}},
		{"it is moved away", func(t *testing.T, ctx context.Context, name string) {
			require.NoError(t, f.Rename(ctx, name, name+"-old", core.RenameNoReplace))
			require.NoError(t, put(ctx, f, name, []byte("of another")))
			replaced(t, ctx, name)
			requireSynced(t, ctx, f, name+"-old")
		}},
		{"it is closed", func(t *testing.T, ctx context.Context, name string) {
			_, _, err := f.FileCRC32C(ctx, name)
			require.ErrorIs(t, err, errors.ErrUnsupported, "it is open")
			require.NoError(t, f.CloseAbandoned(ctx, name))
			requireSynced(t, ctx, f, name)
			_, size, err := f.FileCRC32C(ctx, name)
			require.NoError(t, err)
			info, err := f.Stat(ctx, name)
			require.NoError(t, err)
			require.Equal(t, size, info.Size)
			require.NoError(t, f.CloseAbandoned(ctx, name), "again")
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			dir := c.TempDir(t) + "/attempt-1"
			require.NoError(t, f.MkdirAll(t.Context(), dir))
			name := dir + "/file"
			writer := start()
			require.True(t, writer.do(t, order{Do: "hold", New: name, Content: halfWritten}).Won)
			require.NoError(t, writer.in.Encode(order{Do: "finish", Content: strings.Repeat("not synced", 1<<20)}))
			writer.kill(t)
			took := within(t, 30*time.Second, func(ctx context.Context) { tt.take(t, ctx, name) })
			t.Logf("%v", took.Round(time.Millisecond))
		})
	}
}

// Whoever asks for the name of a writer that lives does not disturb it.
func TestAWriterThatLivesIsNotDisturbedByThoseWhoWantItsName(t *testing.T) {
	c, f, start := leaseRig(t)
	ctx, dir := t.Context(), c.TempDir(t)
	writer := start()
	require.True(t, writer.do(t, order{Do: "hold", New: dir + "/file", Content: halfWritten}).Won)
	require.NoError(t, put(ctx, f, dir+"/other", nil))
	for range 3 {
		_, err := f.Create(ctx, dir+"/file", core.CreateOptions{})
		require.ErrorIs(t, err, fs.ErrExist)
		require.ErrorIs(t, f.Rename(ctx, dir+"/other", dir+"/file", core.RenameNoReplace), fs.ErrExist)
		requireSynced(t, ctx, f, dir+"/file")
	}
	require.Equal(t, reply{Won: true}, writer.do(t, order{Do: "finish", Content: "the end"}))
	got, err := get(ctx, f, dir+"/file")
	require.NoError(t, err)
	require.Equal(t, halfWritten+"the end", string(got))
}

// Whoever takes the file from a writer that lives fences it: it is told, and what it had synced is there.
func TestAWriterWhoseFileIsClosedByAnotherIsFenced(t *testing.T) {
	c, f, start := leaseRig(t)
	ctx, dir := t.Context(), c.TempDir(t)
	writer := start()
	require.True(t, writer.do(t, order{Do: "hold", New: dir + "/file", Content: halfWritten}).Won)
	require.NoError(t, f.CloseAbandoned(ctx, dir+"/file"))
	end := writer.do(t, order{Do: "finish", Content: "too late"})
	require.False(t, end.Won)
	require.True(t, end.Gone, end.Err)
	got, err := get(ctx, f, dir+"/file")
	require.NoError(t, err)
	require.Equal(t, halfWritten, string(got))
}

func TestClosingWhatCannotBeClosed(t *testing.T) {
	c, f, _ := leaseRig(t)
	ctx, dir := t.Context(), c.TempDir(t)
	for name, want := range map[string]error{dir: fs.ErrInvalid, dir + "/none": fs.ErrNotExist, "relative": fs.ErrInvalid} {
		var pathErr *fs.PathError
		err := f.CloseAbandoned(ctx, name)
		require.ErrorAs(t, err, &pathErr, name)
		require.Equal(t, fmt.Sprint("recover ", name), pathErr.Op+" "+pathErr.Path)
		require.ErrorIs(t, err, want, name)
	}
	o := optionsFor(c, "alice")
	o.Client = ClientLibrary
	require.ErrorIs(t, openOn(t, c, o).CloseAbandoned(ctx, dir+"/none"), errors.ErrUnsupported)
}
