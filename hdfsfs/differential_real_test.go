package hdfsfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// side is one client in its own directory.
type side struct {
	*FS
	dir string
}

// step is an operation, the same on both sides. It returns what the caller sees.
type step struct {
	text string
	do   func(ctx context.Context, s side) (seen string, err error)
}

// settled does the step again if it was told to: a busy NameNode may name fewer DataNodes than there are.
func (st step) settled(ctx context.Context, s side) (seen string, err error) {
	for range 20 {
		if seen, err = st.do(ctx, s); !errors.Is(err, core.ErrUnavailable) {
			break
		}
	}
	return seen, err
}

// sentinelsOf names the causes that a caller can tell.
func sentinelsOf(err error) string {
	var found []string
	for name, sentinel := range map[string]error{
		"not exist": fs.ErrNotExist, "exist": fs.ErrExist, "permission": fs.ErrPermission, "invalid": fs.ErrInvalid, "closed": fs.ErrClosed,
		"unsupported": errors.ErrUnsupported, "corrupt": core.ErrCorrupt, "no space": core.ErrNoSpace, "quota": core.ErrQuota,
		"unavailable": core.ErrUnavailable, "canceled": context.Canceled,
	} {
		if errors.Is(err, sentinel) {
			found = append(found, name)
		}
	}
	var pathErr *fs.PathError
	if err != nil && len(found) != 1 {
		return fmt.Sprintf("%d sentinels: %v", len(found), err)
	}
	if err == nil {
		return "nil"
	}
	if errors.As(err, &pathErr) {
		return pathErr.Op + ": " + found[0]
	}
	return found[0]
}

// randomStep chooses names from a small tree, so that most of them are taken, missing, or of the other kind.
func randomStep(random *rand.Rand) step {
	names := []string{"/a", "/b", "/d", "/d/x", "/d/y", "/d/e", "/d/e/z", "/ü", "/d/ p%+", "/a/under"}
	name, other := names[random.IntN(len(names))], names[random.IntN(len(names))]
	content := make([]byte, []int{0, 1, 511, 513, 70_000, 1<<20 + 5}[random.IntN(6)])
	_, _ = rand.NewChaCha8([32]byte{byte(random.Uint32())}).Read(content)
	replace := core.RenameMode(random.IntN(2))
	off, length := random.Int64N(80_000), random.IntN(90_000)
	switch random.IntN(11) {
	case 0, 1:
		replicas := []int{0, 1, 3, 4, -1}[random.IntN(5)]
		return step{fmt.Sprintf("create %s, %d bytes, %d replicas", name, len(content), replicas), func(ctx context.Context, s side) (string, error) {
			w, err := s.Create(ctx, s.dir+name, core.CreateOptions{Durability: core.Replicated, MinReplicas: replicas})
			if err != nil {
				return "", err
			}
			if _, err = w.Write(content); err == nil {
				err = w.Close()
			}
			return "", errors.Join(err, w.Abort())
		}}
	case 2:
		return step{"create and abort " + name, func(ctx context.Context, s side) (string, error) {
			w, err := s.Create(ctx, s.dir+name, core.CreateOptions{Durability: core.Replicated})
			if err != nil {
				return "", err
			}
			_, _ = w.Write(content)
			return "", w.Abort()
		}}
	case 3:
		return step{"create, remove, close " + name, func(ctx context.Context, s side) (string, error) {
			w, err := s.Create(ctx, s.dir+name, core.CreateOptions{Durability: core.Replicated})
			if err != nil {
				return "", err
			}
			_, _ = w.Write(content)
			if err := s.Remove(ctx, s.dir+name); err != nil {
				return "removing", err
			}
			err = w.Close()
			_ = w.Abort()
			return "closing", err
		}}
	case 4:
		return step{"stat " + name, func(ctx context.Context, s side) (string, error) {
			info, err := s.Stat(ctx, s.dir+name)
			size := info.Size
			if info.IsDir() {
				size = 0
			}
			return fmt.Sprint(info.Name, size, info.Mode), err
		}}
	case 5:
		return step{"read " + name, func(ctx context.Context, s side) (string, error) {
			got, err := get(ctx, s.FS, s.dir+name)
			return fmt.Sprint(len(got), crc32.ChecksumIEEE(got)), err
		}}
	case 6:
		return step{fmt.Sprintf("read %s, %d at %d", name, length, off), func(ctx context.Context, s side) (string, error) {
			r, err := s.Open(ctx, s.dir+name)
			if err != nil {
				return "", err
			}
			defer func() { _ = r.Close() }()
			p := make([]byte, length)
			n, err := r.ReadAt(p, off)
			if errors.Is(err, io.EOF) {
				return fmt.Sprint("end", n, r.Size(), crc32.ChecksumIEEE(p[:n])), nil
			}
			return fmt.Sprint(n, r.Size(), crc32.ChecksumIEEE(p[:n])), err
		}}
	case 7:
		return step{"mkdir " + name, func(ctx context.Context, s side) (string, error) { return "", s.MkdirAll(ctx, s.dir+name) }}
	case 8:
		return step{fmt.Sprintf("rename %s %s %d", name, other, replace), func(ctx context.Context, s side) (string, error) {
			return "", s.Rename(ctx, s.dir+name, s.dir+other, replace)
		}}
	case 9:
		return step{"list " + name, func(ctx context.Context, s side) (string, error) {
			text := ""
			for info, err := range s.List(ctx, s.dir+name) {
				if err != nil {
					return text, err
				}
				text += fmt.Sprint(info.Name, info.Mode, " ")
			}
			return text, nil
		}}
	default:
		if random.IntN(4) == 0 {
			return step{"remove all " + name, func(ctx context.Context, s side) (string, error) { return "", s.RemoveAll(ctx, s.dir+name) }}
		}
		return step{"remove " + name, func(ctx context.Context, s side) (string, error) { return "", s.Remove(ctx, s.dir+name) }}
	}
}

// tree reads everything below a directory.
func tree(ctx context.Context, t *testing.T, f *FS, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for info, err := range f.List(ctx, dir) {
		require.NoError(t, err)
		if info.IsDir() {
			found[info.Name] = "a directory"
			for name, what := range tree(ctx, t, f, dir+"/"+info.Name) {
				found[info.Name+"/"+name] = what
			}
			continue
		}
		got, err := get(ctx, f, dir+"/"+info.Name)
		require.NoError(t, err)
		found[info.Name] = fmt.Sprint(info.Mode, len(got), crc32.ChecksumIEEE(got))
	}
	return found
}

// TestBothClientsDoAndSayTheSame runs random histories on both. HDFSCKPT_CHAOS asks for more of them.
func TestBothClientsDoAndSayTheSame(t *testing.T) {
	c := requirePlain(t)
	histories := 2
	if n, err := strconv.Atoi(os.Getenv("HDFSCKPT_CHAOS")); err == nil {
		histories = n
	}
	var sides []side
	for _, kind := range kinds {
		o := optionsFor(c, "alice")
		o.Client, o.BlockSize = kind, 1<<20
		sides = append(sides, side{FS: openOn(t, c, o)})
	}
	for seed := range uint64(histories) { //nolint:gosec // a few
		base := c.TempDir(t)
		random := rand.New(rand.NewPCG(seed, 11))
		for i := range sides {
			sides[i].dir = fmt.Sprint(base, "/", i)
			require.NoError(t, sides[i].MkdirAll(t.Context(), sides[i].dir))
		}
		for i := range 150 {
			st := randomStep(random)
			seen0, err0 := st.settled(t.Context(), sides[0])
			seen1, err1 := st.settled(t.Context(), sides[1])
			require.Equal(t, sentinelsOf(err1), sentinelsOf(err0), "seed %d, step %d: %s: library %v, native %v", seed, i, st.text, err1, err0)
			require.Equal(t, seen1, seen0, "seed %d, step %d: %s", seed, i, st.text)
		}
		want := tree(t.Context(), t, sides[1].FS, sides[1].dir)
		require.Equal(t, want, tree(t.Context(), t, sides[0].FS, sides[0].dir), "seed %d", seed)
		require.Equal(t, want, tree(t.Context(), t, sides[1].FS, sides[0].dir), "seed %d: the library reads what the native client has written", seed)
		require.Equal(t, want, tree(t.Context(), t, sides[0].FS, sides[1].dir), "seed %d: the native client reads what the library has written", seed)
	}
}

func TestDataNodesTellTheChecksumOfAFile(t *testing.T) {
	c := requirePlain(t)
	o := optionsFor(c, "alice")
	o.BlockSize = 1 << 20
	f := openOn(t, c, o)
	dir := c.TempDir(t)
	for _, size := range []int{0, 1, 1 << 20, 3<<20 + 333} {
		content := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]
		name := fmt.Sprint(dir, "/", size)
		require.NoError(t, put(t.Context(), f, name, content))
		sum, length, err := f.FileCRC32C(t.Context(), name)
		require.NoError(t, err)
		require.EqualValues(t, size, length)
		require.Equal(t, crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)), sum)
	}
	_, _, err := f.FileCRC32C(t.Context(), dir)
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, _, err = f.FileCRC32C(t.Context(), dir+"/missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
	w, err := f.Create(t.Context(), dir+"/open", core.CreateOptions{})
	require.NoError(t, err)
	_, err = w.Write([]byte("content"))
	require.NoError(t, err)
	require.NoError(t, w.Sync())
	_, _, err = f.FileCRC32C(t.Context(), dir+"/open")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, w.Abort())
}

func TestSyncedBytesAreSeenByAnotherClientBeforeTheEnd(t *testing.T) {
	c := requirePlain(t)
	o := optionsFor(c, "alice")
	o.BlockSize = 1 << 20
	f, second := openOn(t, c, o), openOn(t, c, o)
	dir := c.TempDir(t)
	content := bytes.Repeat([]byte("0123456789abcde"), 200_000)
	for _, durability := range []core.Durability{core.Replicated, core.Synced} {
		name := fmt.Sprint(dir, "/", durability)
		w, err := f.Create(t.Context(), name, core.CreateOptions{Durability: durability, MinReplicas: 3})
		require.NoError(t, err)
		at := 0
		for _, next := range []int{1, 70_000, 1 << 20, 1<<20 + 1, len(content)} {
			_, err := w.Write(content[at:next])
			require.NoError(t, err)
			require.NoError(t, w.Sync())
			at = next
			got, err := get(t.Context(), second, name)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content[:next], got), "%s, %d bytes: %d", durability, next, len(got))
		}
		require.NoError(t, w.Close())
		got, err := get(t.Context(), second, name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got))
	}
}

func TestAWriterWhoseFileIsTakenAwayIsFencedAndHarmsNobody(t *testing.T) {
	c := requirePlain(t)
	f := openOn(t, c, optionsFor(c, "alice"))
	second := openOn(t, c, optionsFor(c, "alice"))
	name := c.TempDir(t) + "/file"
	for _, synced := range []bool{false, true} {
		w, err := f.Create(t.Context(), name, core.CreateOptions{})
		require.NoError(t, err)
		_, err = w.Write([]byte("of the zombie"))
		require.NoError(t, err)
		if synced {
			require.NoError(t, w.Sync())
		}
		require.NoError(t, second.Remove(t.Context(), name))
		require.NoError(t, put(t.Context(), second, name, []byte("of the successor")))
		require.ErrorIs(t, w.Close(), fs.ErrNotExist)
		require.NoError(t, w.Abort())
		got, err := get(t.Context(), f, name)
		require.NoError(t, err)
		require.Equal(t, "of the successor", string(got))
		require.NoError(t, second.Remove(t.Context(), name))
	}
}

// TestANameThatADeadWriterLeftOpenIsStillOneName: it is taken, can be read as far as it was synced, moved and removed.
func TestANameThatADeadWriterLeftOpenIsStillOneName(t *testing.T) {
	c := requirePlain(t)
	dead, err := Open(t.Context(), c.NameNode(), optionsFor(c, "alice"))
	require.NoError(t, err)
	dir := c.TempDir(t)
	w, err := dead.Create(t.Context(), dir+"/open", core.CreateOptions{})
	require.NoError(t, err)
	_, err = w.Write([]byte("content"))
	require.NoError(t, err)
	require.NoError(t, w.Sync())
	require.NoError(t, dead.Close())

	f := openOn(t, c, optionsFor(c, "alice"))
	_, err = f.Create(t.Context(), dir+"/open", core.CreateOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	got, err := get(t.Context(), f, dir+"/open")
	require.NoError(t, err)
	require.Equal(t, "content", string(got))
	require.NoError(t, f.Rename(t.Context(), dir+"/open", dir+"/moved", core.RenameNoReplace))
	require.NoError(t, put(t.Context(), f, dir+"/new", []byte("new")))
	require.NoError(t, f.Rename(t.Context(), dir+"/new", dir+"/moved", core.RenameReplace))
	got, err = get(t.Context(), f, dir+"/moved")
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
}
