package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

const readerFile = "/state"

// checksumsOf are the true checksums over chunks of any size.
func checksumsOf(content []byte, chunkSize int) *core.Checksums {
	sums := &core.Checksums{ChunkSize: chunkSize}
	for chunk := range slices.Chunk(content, chunkSize) {
		sums.Sums = append(sums.Sums, core.CRC32C(chunk))
	}
	return sums
}

// fileHandleOn stores content and returns a handle to it.
func fileHandleOn(t testing.TB, fsys core.FileSystem, content []byte, sums *core.Checksums) *core.FileHandle {
	t.Helper()
	putAtomic(t, fsys, readerFile, content)
	return &core.FileHandle{Path: readerFile, Size: int64(len(content)), Checksums: sums}
}

func openState(t testing.TB, fsys core.FileSystem, handle core.StreamHandle) *core.StateReader {
	t.Helper()
	r, err := core.OpenState(t.Context(), core.OnlyOn(fsys), handle)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// readerForms are the same bytes in every form of a handle.
func readerForms(t testing.TB, content []byte) map[string]*core.StateReader {
	t.Helper()
	forms := map[string]*core.StateReader{}
	open := func(name string, handle func(fsys core.FileSystem) core.StreamHandle) {
		mem := memfs.New(memfs.Options{})
		forms[name] = openState(t, mem, handle(mem))
	}
	for _, chunkSize := range []int{1, 7, 100, len(content) - 1, len(content), len(content) + 1, core.ChecksumChunk, 3 * core.ChecksumChunk, math.MaxInt} {
		if chunkSize < 1 {
			continue
		}
		open(fmt.Sprintf("file with chunks of %d", chunkSize), func(fsys core.FileSystem) core.StreamHandle {
			return fileHandleOn(t, fsys, content, checksumsOf(content, chunkSize))
		})
	}
	open("file without checksums", func(fsys core.FileSystem) core.StreamHandle { return fileHandleOn(t, fsys, content, nil) })
	open("file of unknown size", func(fsys core.FileSystem) core.StreamHandle {
		handle := fileHandleOn(t, fsys, content, nil)
		handle.Size = -1
		return handle
	})
	open("relative file", func(fsys core.FileSystem) core.StreamHandle {
		fileHandleOn(t, fsys, content, nil)
		return &core.RelativeFileHandle{Dir: "mem:", Name: "state", Size: int64(len(content)), Checksums: checksumsOf(content, 50)}
	})
	open("bytes", func(core.FileSystem) core.StreamHandle { return &core.BytesHandle{Data: content} })
	return forms
}

func TestStateReaderIsAReader(t *testing.T) {
	// Flink: ByteStreamStateHandleTest.testStreamWithEmptyByteArray
	for _, size := range []int{0, 1, 99, 100, 1000} {
		for name, r := range readerForms(t, noise(size)) {
			t.Run(fmt.Sprintf("%d bytes/%s", size, name), func(t *testing.T) {
				require.Equal(t, int64(size), r.Size())
				n, err := r.Read(nil)
				require.NoError(t, err)
				require.Zero(t, n)
				require.NoError(t, iotest.TestReader(r, noise(size)))
			})
		}
	}
	t.Run("no state", func(t *testing.T) {
		r := openState(t, memfs.New(memfs.Options{}), nil)
		require.Zero(t, r.Size())
		require.False(t, r.Verified())
		require.NoError(t, iotest.TestReader(r, nil))
	})
}

func TestStateReaderReadsAcrossChunkBorders(t *testing.T) {
	const size = 2*core.ChecksumChunk + 1000
	content := noise(size)
	// Others' chunks may be larger than ours.
	for _, chunk := range []int64{core.ChecksumChunk, core.ChecksumChunk + 1, 3 << 20} {
		t.Run(fmt.Sprintf("chunks of %d", chunk), func(t *testing.T) {
			mem := memfs.New(memfs.Options{})
			r := openState(t, mem, fileHandleOn(t, mem, content, checksumsOf(content, int(chunk))))
			require.True(t, r.Verified())
			for _, at := range []int64{0, 1, chunk - 1, chunk, chunk + 1, size - 1} {
				for _, n := range []int64{1, 1000, chunk, chunk + 2, 3 * chunk} {
					p := make([]byte, n)
					got, err := r.ReadAt(p, at)
					want := content[min(at, size):min(at+n, size)]
					require.True(t, bytes.Equal(want, p[:got]), "%d bytes at %d", n, at)
					if int64(got) < n {
						require.ErrorIs(t, err, io.EOF)
					} else {
						require.NoError(t, err)
					}
				}
			}
			for _, piece := range []int64{5000, chunk - 1, chunk, chunk + 1} {
				_, err := r.Seek(0, io.SeekStart)
				require.NoError(t, err)
				var whole bytes.Buffer
				_, err = io.CopyBuffer(&whole, onlyReader{r}, make([]byte, piece))
				require.NoError(t, err)
				require.True(t, bytes.Equal(content, whole.Bytes()), "in pieces of %d", piece)
			}
		})
	}
}

type onlyReader struct{ io.Reader }

func TestStateReaderSeeksInsideTheState(t *testing.T) {
	// Flink: ByteStreamStateHandleTest.testStreamSeekAndPos
	// Flink: ByteStreamStateHandleTest.testStreamSeekOutOfBounds
	// Flink: ByteStreamStateHandleTest.testBulkRead
	// Better than ByteStreamStateHandleTest.testBulkReadIndexOutOfBounds: a slice has no index that could be wrong.
	content := []byte{34, 25, 22, 66, 88, 54}
	for name, r := range readerForms(t, content) {
		t.Run(name, func(t *testing.T) {
			one := make([]byte, 1)
			for i := len(content); i >= 0; i-- {
				at, err := r.Seek(int64(i), io.SeekStart)
				require.NoError(t, err)
				require.Equal(t, int64(i), at)
				n, err := r.Read(nil)
				require.NoError(t, err, "reading nothing is no end")
				require.Zero(t, n)
				if i == len(content) {
					for range 2 {
						n, err = r.Read(one)
						require.Zero(t, n)
						require.ErrorIs(t, err, io.EOF)
					}
					continue
				}
				_, err = io.ReadFull(r, one)
				require.NoError(t, err)
				require.Equal(t, content[i], one[0])
			}
			before, err := r.Seek(2, io.SeekStart)
			require.NoError(t, err)
			for _, bad := range []struct {
				offset int64
				whence int
			}{
				{-2, io.SeekStart},
				{int64(len(content)) + 1, io.SeekStart},
				{math.MaxInt32 + 100, io.SeekStart},
				{math.MaxInt64, io.SeekCurrent},
				{math.MinInt64, io.SeekCurrent},
				{math.MaxInt64, io.SeekEnd},
				{-3, io.SeekCurrent},
				{1, io.SeekEnd},
				{0, 3},
				{0, -1},
			} {
				_, err := r.Seek(bad.offset, bad.whence)
				require.ErrorIs(t, err, fs.ErrInvalid, "%+v", bad)
			}
			at, err := r.Seek(0, io.SeekCurrent)
			require.NoError(t, err)
			require.Equal(t, before, at, "a refused seek moves nothing")
			_, err = r.ReadAt(one, -1)
			require.ErrorIs(t, err, fs.ErrInvalid)
			at, err = r.Seek(-1, io.SeekEnd)
			require.NoError(t, err)
			require.Equal(t, int64(len(content)-1), at)
			p := make([]byte, 10)
			n, err := r.Read(p)
			require.NoError(t, err)
			require.Equal(t, content[5:], p[:n], "a bulk read gives what there is")
		})
	}
}

func TestStateReaderSeekBetweenSmallReads(t *testing.T) {
	generator := loggedRand(t)
	content := noise(5000)
	for name, r := range readerForms(t, content) {
		t.Run(name, func(t *testing.T) {
			at := int64(0)
			for range 300 {
				if generator.IntN(3) == 0 {
					at = generator.Int64N(int64(len(content)) + 1)
					_, err := r.Seek(at, io.SeekStart)
					require.NoError(t, err)
				}
				p := make([]byte, generator.IntN(200))
				n, err := io.ReadFull(r, p)
				want := content[at:min(at+int64(len(p)), int64(len(content)))]
				require.True(t, bytes.Equal(want, p[:n]))
				require.Equal(t, n < len(p), errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
				at += int64(n)
			}
		})
	}
}

func TestStateReaderReadAtIsForManyGoroutines(t *testing.T) {
	content := noise(100_000)
	for name, r := range readerForms(t, content) {
		t.Run(name, func(t *testing.T) {
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() {
					generator := rand.New(rand.NewPCG(uint64(i), 1))
					for range 5 {
						at := generator.IntN(len(content))
						p := make([]byte, generator.IntN(3000))
						n, err := r.ReadAt(p, int64(at))
						if err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(content[at:at+n], p[:n]) {
							t.Errorf("%d bytes at %d: %v", len(p), at, err)
							return
						}
					}
				})
			}
			// Beside them the one goroutine that reads on.
			whole, err := io.ReadAll(r)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, whole))
			group.Wait()
		})
	}
}

func TestStateReaderClosesOnce(t *testing.T) {
	for _, sums := range []*core.Checksums{nil, checksumsOf(noise(100), 30)} {
		mem := memfs.New(memfs.Options{})
		faults := faultfs.Wrap(mem, nil)
		for _, handle := range []core.StreamHandle{
			nil, &core.BytesHandle{Data: noise(100)}, &core.FileHandle{Path: readerFile, Size: 100, Checksums: sums},
		} {
			if handle != nil {
				_ = mem.Remove(t.Context(), readerFile) // of the round before
				putAtomic(t, mem, readerFile, noise(100))
			}
			r, err := core.OpenState(t.Context(), core.OnlyOn(faults), handle)
			require.NoError(t, err)
			_, _ = r.Read(make([]byte, 10)) // leaves a chunk in the buffer; what it gives does not matter
			require.NoError(t, r.Close())
			require.NoError(t, r.Close())
			require.Empty(t, mem.OpenFiles())
			calls := faults.Count()
			_, err = r.Read(make([]byte, 1))
			require.ErrorIs(t, err, fs.ErrClosed)
			_, err = r.ReadAt(make([]byte, 1), 0)
			require.ErrorIs(t, err, fs.ErrClosed)
			_, err = r.Seek(0, io.SeekStart)
			require.ErrorIs(t, err, fs.ErrClosed)
			require.Equal(t, calls, faults.Count())
		}
	}
}

// TestStateReaderCloseFromAnotherGoroutine closes readers in the middle of reads. Their buffers are pooled: a read that goes
// on must not reach into the buffer of another reader.
func TestStateReaderCloseFromAnotherGoroutine(t *testing.T) {
	const chunk = 64 << 10
	content := noise(4 * chunk)
	mem := memfs.New(memfs.Options{})
	handle := fileHandleOn(t, mem, content, checksumsOf(content, chunk))
	for range 50 {
		var group sync.WaitGroup
		for range 3 {
			r, err := core.OpenState(t.Context(), core.OnlyOn(mem), handle)
			require.NoError(t, err)
			group.Go(func() {
				p := make([]byte, 1000)
				for at := 0; ; {
					n, err := r.Read(p)
					if !bytes.Equal(content[at:at+n], p[:n]) {
						t.Errorf("other bytes at %d", at)
					}
					if at += n; err != nil {
						if !errors.Is(err, fs.ErrClosed) && !errors.Is(err, io.EOF) {
							t.Error(err)
						}
						return
					}
				}
			})
			group.Go(func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	require.Empty(t, mem.OpenFiles())
}

func TestStateReaderEndOfItsContextBreaksAReadThatHangs(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpOpen, faultfs.OpReadAt} {
		for _, sums := range []*core.Checksums{nil, checksumsOf(noise(100), 30)} {
			synctest.Test(t, func(t *testing.T) {
				mem := memfs.New(memfs.Options{})
				handle := fileHandleOn(t, mem, noise(100), sums)
				faults := faultfs.Wrap(mem, faultfs.OnOp(op, faultfs.Fault{Block: make(chan struct{})}))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				outcome := make(chan error, 1)
				go func() {
					r, err := core.OpenState(ctx, core.OnlyOn(faults), handle)
					if err == nil {
						_, err = r.Read(make([]byte, 10))
						err = errors.Join(err, r.Close())
					}
					outcome <- err
				}()
				synctest.Wait()
				require.Empty(t, outcome)
				cancel()
				require.ErrorIs(t, <-outcome, context.Canceled)
				require.Empty(t, mem.OpenFiles())
			})
		}
	}
}

func TestOpenStateOfObjects(t *testing.T) {
	content := noise(100)
	mem := memfs.New(memfs.Options{})
	putAtomic(t, mem, readerFile, content)
	for name, tt := range map[string]struct {
		object core.Object
		want   error
	}{
		"known size":               {core.Object{Path: readerFile, Size: 100}, nil},
		"unknown size":             {core.Object{Path: readerFile, Size: -1}, nil},
		"unknown size, flag byte":  {core.Object{Path: readerFile, Size: -1, FlagByte: true}, nil},
		"a byte that is not meant": {core.Object{Path: readerFile, Size: 99, FlagByte: true}, nil},
		"checksums":                {core.Object{Path: readerFile, Size: 100, Checksums: checksumsOf(content, 7)}, nil},
		"other size":               {core.Object{Path: readerFile, Size: 99}, core.ErrCorrupt},
		"missing":                  {core.Object{Path: "/missing", Size: 99}, fs.ErrNotExist},
		"no path":                  {core.Object{Path: "missing", Size: 99}, fs.ErrInvalid},
		"a directory":              {core.Object{Path: "/", Size: -1, Directory: true}, fs.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := core.OpenObject(t.Context(), core.OnlyOn(mem), tt.object)
			require.ErrorIs(t, err, tt.want)
			if tt.want == nil {
				got, err := io.ReadAll(r)
				require.NoError(t, err)
				require.Equal(t, content, got)
				require.NoError(t, r.Close())
			}
			require.Empty(t, mem.OpenFiles())
		})
	}
}
