package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

const corruptChunk, corruptSize = 100, 350

// corrupted is a file of corruptSize bytes, damaged by damage, and a handle with the checksums of the right bytes.
func corrupted(t testing.TB, damage func([]byte) []byte) (*memfs.FS, *core.FileHandle) {
	t.Helper()
	content := noise(corruptSize)
	mem := memfs.New(memfs.Options{})
	putAtomic(t, mem, readerFile, damage(bytes.Clone(content)))
	return mem, &core.FileHandle{Path: readerFile, Size: corruptSize, Checksums: checksumsOf(content, corruptChunk)}
}

// TestStateReaderLetsNoByteOfABadChunkThrough flips one bit of each region of each chunk and reads in every way.
func TestStateReaderLetsNoByteOfABadChunkThrough(t *testing.T) {
	for _, flipped := range []int{0, 1, 50, 99, 100, 150, 199, 299, 300, 310, 349} {
		for bit := range 8 {
			mem, handle := corrupted(t, func(data []byte) []byte {
				data[flipped] ^= 1 << bit
				return data
			})
			bad := flipped - flipped%corruptChunk
			for _, step := range []int{1, 7, 99, 100, 101, 250, corruptSize, 1000} {
				r := openState(t, mem, handle)
				requireStopsAt(t, r, bad, step)
				requireStopsAt(t, r, bad, step) // again: the failing chunk is not kept
				requireReadAtStops(t, r, bad, step)
			}
		}
	}
}

// requireStopsAt reads from the beginning in pieces of step bytes, up to the bad chunk and not a byte further.
func requireStopsAt(t *testing.T, r *core.StateReader, bad, step int) {
	t.Helper()
	content := noise(corruptSize)
	_, err := r.Seek(0, io.SeekStart)
	require.NoError(t, err)
	for at := 0; ; {
		p := bytes.Repeat([]byte{0xaa}, step)
		n, err := r.Read(p)
		require.Equal(t, content[at:at+n], p[:n])
		requireUntouched(t, p[n:])
		at += n
		if err != nil {
			requireCorruptAt(t, err, bad)
			require.Equal(t, bad, at)
			return
		}
	}
}

// requireReadAtStops reads every range that begins at a multiple of 50.
func requireReadAtStops(t *testing.T, r *core.StateReader, bad, length int) {
	t.Helper()
	content := noise(corruptSize)
	for at := 0; at < corruptSize; at += 50 {
		p := bytes.Repeat([]byte{0xaa}, length)
		n, err := r.ReadAt(p, int64(at))
		require.Equal(t, content[at:at+n], p[:n])
		requireUntouched(t, p[n:])
		touches := at < bad+corruptChunk && at+length > bad
		if touches {
			requireCorruptAt(t, err, bad)
			require.Equal(t, max(bad-at, 0), n)
		} else {
			require.True(t, err == nil || errors.Is(err, io.EOF), "%v", err)
		}
	}
}

// requireUntouched says that nothing of the file, which holds neither value, is in p.
func requireUntouched(t *testing.T, p []byte) {
	t.Helper()
	for i, c := range p {
		if c != 0 && c != 0xaa {
			require.Fail(t, "a byte of the bad chunk got through", "%#x at %d", c, i)
		}
	}
}

func requireCorruptAt(t *testing.T, err error, offset int) {
	t.Helper()
	require.ErrorIs(t, err, core.ErrCorrupt)
	var pathError *fs.PathError
	require.ErrorAs(t, err, &pathError)
	require.Equal(t, readerFile, pathError.Path)
	require.ErrorContains(t, err, fmt.Sprintf("offset %d ", offset))
}

func TestStateReaderRefusesAFileOfAnotherLength(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"empty":                  func([]byte) []byte { return nil },
		"cut in a chunk":         func(data []byte) []byte { return data[:210] },
		"cut between chunks":     func(data []byte) []byte { return data[:200] },
		"last byte missing":      func(data []byte) []byte { return data[:len(data)-1] },
		"a byte too many":        func(data []byte) []byte { return append(data, 1) },
		"a whole chunk too many": func(data []byte) []byte { return append(data, noise(corruptChunk)...) },
	} {
		for _, size := range []int64{corruptSize, -1} {
			for _, relative := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/size %d/relative %v", name, size, relative), func(t *testing.T) {
					mem, handle := corrupted(t, damage)
					handle.Size = size
					readable := false
					if size < 0 && (name == "last byte missing" || name == "a byte too many") {
						readable = true // the same number of chunks: the last one is wrong
					}
					r, err := core.OpenState(t.Context(), core.OnlyOn(mem), asHandle(handle, relative))
					if readable {
						require.NoError(t, err)
						_, err = io.ReadAll(r)
						requireCorruptAt(t, err, 300)
						require.NoError(t, r.Close())
					}
					require.ErrorIs(t, err, core.ErrCorrupt)
					require.ErrorContains(t, err, readerFile)
					require.Empty(t, mem.OpenFiles())
				})
			}
		}
	}
}

func asHandle(handle *core.FileHandle, relative bool) core.StreamHandle {
	if relative {
		return &core.RelativeFileHandle{Dir: "mem:", Name: handle.Path[1:], Size: handle.Size, Checksums: handle.Checksums}
	}
	return handle
}

func TestStateReaderRefusesChecksumsThatDoNotFit(t *testing.T) {
	content := noise(corruptSize)
	good := checksumsOf(content, corruptChunk)
	for name, sums := range map[string]*core.Checksums{
		"none at all":      {ChunkSize: corruptChunk},
		"one missing":      {ChunkSize: corruptChunk, Sums: good.Sums[:3]},
		"one too many":     {ChunkSize: corruptChunk, Sums: append(bytesToSums(good), 1)},
		"chunk size 0":     {ChunkSize: 0, Sums: good.Sums},
		"chunk size -1":    {ChunkSize: -1, Sums: good.Sums},
		"smallest integer": {ChunkSize: math.MinInt, Sums: good.Sums},
		"largest integer":  {ChunkSize: math.MaxInt, Sums: good.Sums},
		"other chunk size": {ChunkSize: corruptSize, Sums: good.Sums},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memfs.New(memfs.Options{})
			putAtomic(t, mem, readerFile, content)
			_, err := core.OpenState(t.Context(), core.OnlyOn(mem), &core.FileHandle{Path: readerFile, Size: corruptSize, Checksums: sums})
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.ErrorContains(t, err, readerFile)
			require.Empty(t, mem.OpenFiles())
		})
	}
	t.Run("of an empty file", func(t *testing.T) {
		mem := memfs.New(memfs.Options{})
		handle := fileHandleOn(t, mem, nil, &core.Checksums{ChunkSize: 1})
		require.Empty(t, stateOf(t, mem, handle))
	})
}

func bytesToSums(sums *core.Checksums) []uint32 { return append([]uint32(nil), sums.Sums...) }

// TestStateReaderOfAFileThatShrinksReportsIt has a file system whose Reader is not true to the length it was opened with.
func TestStateReaderOfAFileThatShrinksReportsIt(t *testing.T) {
	content := noise(corruptSize)
	for name, sums := range map[string]*core.Checksums{"with checksums": checksumsOf(content, corruptChunk), "without": nil} {
		t.Run(name, func(t *testing.T) {
			mem := memfs.New(memfs.Options{})
			handle := fileHandleOn(t, mem, content, sums)
			r, err := core.OpenState(t.Context(), shrinkingOpener(mem, 220), handle)
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.ErrorContains(t, err, readerFile)
			require.True(t, bytes.HasPrefix(content, got))
			require.Less(t, len(got), 221)
			require.NoError(t, r.Close())
		})
	}
}

func shrinkingOpener(inner core.FileSystem, end int64) core.Opener {
	return core.OnlyOn(shrinkingFS{inner, end})
}

type shrinkingFS struct {
	core.FileSystem
	end int64
}

func (f shrinkingFS) Open(ctx context.Context, name string) (core.Reader, error) {
	r, err := f.FileSystem.Open(ctx, name)
	return shrinkingReader{r, f.end}, err
}

type shrinkingReader struct {
	core.Reader
	end int64
}

func (r shrinkingReader) ReadAt(p []byte, off int64) (int, error) {
	if off >= r.end {
		return 0, io.EOF
	}
	n, err := r.Reader.ReadAt(p[:min(int64(len(p)), r.end-off)], off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// TestStateReaderPassesOnFailuresOfTheStorage fails, tears and damages reads.
func TestStateReaderPassesOnFailuresOfTheStorage(t *testing.T) {
	for name, tt := range map[string]struct {
		fault faultfs.Fault
		want  error
	}{
		"failed":           {faultfs.Fault{Err: core.ErrUnavailable}, core.ErrUnavailable},
		"reply lost":       {faultfs.Fault{Err: core.ErrUnavailable, After: true}, core.ErrUnavailable},
		"torn":             {faultfs.Fault{Err: core.ErrUnavailable, Tear: 30}, core.ErrUnavailable},
		"damaged by disk":  {faultfs.Fault{Flip: true, Bit: 77}, core.ErrCorrupt},
		"corrupt as known": {faultfs.Fault{Err: core.ErrCorrupt}, core.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			mem, handle := corrupted(t, func(data []byte) []byte { return data })
			faults := faultfs.Wrap(mem, faultfs.Window(1, 1, faultfs.OnOp(faultfs.OpReadAt, tt.fault)))
			r, err := core.OpenState(t.Context(), core.OnlyOn(faults), handle)
			require.NoError(t, err)
			p := bytes.Repeat([]byte{0xaa}, corruptSize)
			n, err := r.ReadAt(p, 0)
			require.ErrorIs(t, err, tt.want)
			require.Equal(t, corruptChunk, n, "the first chunk was good")
			requireUntouched(t, p[n:])
			n, err = r.ReadAt(p, 0)
			require.NoError(t, err, "a later attempt succeeds")
			require.Equal(t, noise(corruptSize), p[:n])
			require.NoError(t, r.Close())
		})
	}
}

func TestOpenStateRefusesWhatItCannotOpen(t *testing.T) {
	mem := memfs.New(memfs.Options{})
	faults := faultfs.Wrap(mem, nil)
	require.NoError(t, mem.MkdirAll(t.Context(), "/dir"))
	for name, tt := range map[string]struct {
		handle core.StreamHandle
		want   error
	}{
		"missing file":       {&core.FileHandle{Path: "mem:/missing"}, fs.ErrNotExist},
		"directory":          {&core.FileHandle{Path: "mem:/dir"}, fs.ErrInvalid},
		"other file system":  {&core.FileHandle{Path: "hdfs://ns1/a"}, fs.ErrInvalid},
		"no absolute path":   {&core.FileHandle{Path: "a"}, fs.ErrInvalid},
		"no path":            {&core.FileHandle{}, fs.ErrInvalid},
		"relative, upwards":  {&core.RelativeFileHandle{Dir: "mem:/dir", Name: "../state"}, core.ErrCorrupt},
		"relative, absolute": {&core.RelativeFileHandle{Dir: "mem:/dir", Name: "/state"}, core.ErrCorrupt},
		"foreign type":       {foreignHandle{}, errors.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := core.OpenState(t.Context(), core.OnlyOn(faults), tt.handle)
			require.ErrorIs(t, err, tt.want)
			require.Empty(t, faults.OpenFiles())
		})
	}
	for _, c := range faults.Calls() {
		require.Equal(t, faultfs.OpOpen, c.Op)
		require.NotContains(t, c.Name, "state", "a handle that leads out of its directory touches no storage")
	}
}

type foreignHandle struct{}

func (foreignHandle) StateSize() int64 { return 0 }
func (foreignHandle) IsStreamHandle()  {}

// FuzzStateReader reads a file of any bytes with any checksums: the bytes come back right, or the error is ErrCorrupt.
func FuzzStateReader(f *testing.F) {
	f.Add([]byte("some bytes"), 4, []byte{}, uint16(0), uint16(10))
	f.Add([]byte("some bytes"), 1<<20, []byte{1}, uint16(3), uint16(3))
	f.Add([]byte{}, 1, []byte{0, 0, 0, 0, 1}, uint16(0), uint16(1))
	f.Add([]byte{0, 0, 0}, -5, []byte{9, 9, 9, 9}, uint16(2), uint16(9))
	f.Fuzz(func(t *testing.T, content []byte, chunkSize int, damage []byte, at, length uint16) {
		sums := &core.Checksums{ChunkSize: chunkSize}
		if chunkSize > 0 {
			sums = checksumsOf(content, chunkSize)
		}
		damaged := chunkSize <= 0
		for i, c := range damage {
			if i < len(sums.Sums) {
				sums.Sums[i] ^= uint32(c)
			} else if c != 0 {
				sums.Sums = append(sums.Sums, uint32(c))
			}
			damaged = damaged || c != 0
		}
		mem := memfs.New(memfs.Options{})
		putAtomic(t, mem, readerFile, content)
		r, err := core.OpenState(t.Context(), core.OnlyOn(mem), &core.FileHandle{Path: readerFile, Size: int64(len(content)), Checksums: sums})
		if err != nil {
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.True(t, damaged)
			return
		}
		p := make([]byte, length)
		n, err := r.ReadAt(p, int64(at))
		require.True(t, err == nil || errors.Is(err, io.EOF) || errors.Is(err, core.ErrCorrupt), "%v", err)
		require.True(t, n == 0 || bytes.Equal(content[at:int(at)+n], p[:n]))
		whole, err := io.ReadAll(r)
		require.True(t, bytes.HasPrefix(content, whole))
		require.True(t, err == nil && len(whole) == len(content) || damaged && errors.Is(err, core.ErrCorrupt), "%v", err)
		require.NoError(t, r.Close())
	})
}
