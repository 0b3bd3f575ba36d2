package core_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// scopes are run like Flink's tests, with relative paths on and off.
var scopes = []struct {
	name  string
	scope core.Scope
}{{"exclusive", core.Exclusive}, {"shared", core.Shared}}

func TestStateStreamOfNothingHasNoHandle(t *testing.T) {
	// Flink: FsCheckpointStateOutputStreamTest.testEmptyState
	// Better: the stream is closed afterwards; Flink's stays open.
	for _, tt := range scopes {
		for name, threshold := range map[string]int{"default threshold": 0, "never inline": core.NeverInline} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				r := newStreamRig(t, core.Options{InlineThreshold: threshold})
				s := r.location.CreateStateStream(t.Context(), tt.scope)
				require.NoError(t, s.Flush())
				require.NoError(t, s.Sync())
				handle, err := s.CloseAndGetHandle()
				require.NoError(t, err)
				require.Nil(t, handle)
				require.True(t, s.IsClosed())
				_, err = s.Write([]byte{1})
				require.ErrorIs(t, err, fs.ErrClosed)
				require.Zero(t, s.Pos())
				require.Zero(t, r.faults.Count())
			})
		}
	}
}

func TestStateStreamOfManySizesComesBackByteForByte(t *testing.T) {
	for _, tt := range []struct {
		name                    string
		size, buffer, threshold int
		file                    bool
	}{
		// Flink: FsCheckpointStateOutputStreamTest.testStateBelowMemThreshold
		{"below the threshold", 999, 1024, 1000, false},
		// Flink: FsCheckpointStateOutputStreamTest.testStateOneBufferAboveThreshold
		{"less than a buffer, above the threshold", 896, 1024, 15, true},
		// Flink: FsCheckpointStateOutputStreamTest.testStateAboveMemThreshold
		{"many buffers", 576446, 259, 17, true},
		// Flink: FsCheckpointStateOutputStreamTest.testZeroThreshold
		{"never inline", 16678, 4096, core.NeverInline, true},
		{"several chunks of checksums", 2*core.ChecksumChunk + 77, 4096, 1000, true},
	} {
		for _, scope := range scopes {
			t.Run(tt.name+"/"+scope.name, func(t *testing.T) {
				generator := loggedRand(t)
				r := newStreamRig(t, core.Options{WriteBuffer: tt.buffer, InlineThreshold: tt.threshold})
				s := r.location.CreateStateStream(t.Context(), scope.scope)
				content := noise(tt.size)
				source := bytes.Clone(content)
				writeMixed(t, s, source, generator)
				require.Equal(t, content, source, "the source is not modified")
				clear(source) // and not kept
				handle, err := s.CloseAndGetHandle()
				require.NoError(t, err)
				if tt.file {
					require.Equal(t, scope.scope == core.Shared, isAbsolute(t, handle))
					require.Len(t, r.files(), 1)
				} else {
					require.IsType(t, (*core.BytesHandle)(nil), handle)
				}
				requireState(t, r.mem, content, handle)
				require.NoError(t, core.Discard(t.Context(), core.OnlyOn(r.faults), handle))
				r.requireNothingLeft(t)
			})
		}
	}
}

// isAbsolute tells a file handle from a relative one; any other handle fails the test.
func isAbsolute(t testing.TB, handle core.StreamHandle) bool {
	t.Helper()
	if _, ok := handle.(*core.FileHandle); ok {
		return true
	}
	require.IsType(t, (*core.RelativeFileHandle)(nil), handle)
	return false
}

// writeMixed writes single bytes and slices of random length, and checks the position after each.
func writeMixed(t testing.TB, s *core.StateStream, source []byte, generator *rand.Rand) {
	t.Helper()
	for at := 0; at < len(source); {
		if generator.IntN(3) == 0 {
			require.NoError(t, s.WriteByte(source[at]))
			at++
		} else {
			n := min(len(source)-at, generator.IntN(1+len(source)/10))
			written, err := s.Write(source[at : at+n])
			require.NoError(t, err)
			require.Equal(t, n, written)
			at += n
		}
		require.Equal(t, int64(at), s.Pos())
	}
}

func TestStateStreamPositionIsTheNumberOfBytesAccepted(t *testing.T) {
	// Flink: FsCheckpointStateOutputStreamTest.testGetPos
	t.Run("byte by byte", func(t *testing.T) {
		r := newStreamRig(t, core.Options{WriteBuffer: 31, InlineThreshold: 17})
		s := r.exclusive(t.Context())
		for i := range 64 {
			require.Equal(t, int64(i), s.Pos())
			require.NoError(t, s.WriteByte(0x42))
		}
		_, err := s.CloseAndGetHandle()
		require.NoError(t, err)
		require.Equal(t, int64(64), s.Pos(), "better than Flink, where it is garbage after the end")
	})
	t.Run("mixed", func(t *testing.T) {
		r := newStreamRig(t, core.Options{WriteBuffer: 31, InlineThreshold: 17})
		s := r.exclusive(t.Context())
		writeMixed(t, s, noise(1000), loggedRand(t))
		require.NoError(t, s.Close())
		require.Equal(t, int64(1000), s.Pos())
		r.requireNothingLeft(t)
	})
}

func TestStateStreamBufferBelowTheThresholdIsRaisedToIt(t *testing.T) {
	// Flink: FsCheckpointStateOutputStreamTest.testWrongParameters
	// Better: Flink refuses a buffer of 4000 with a threshold of 5000; also for task-owned streams, where it forgets its max().
	r := newStreamRig(t, core.Options{WriteBuffer: 4000, InlineThreshold: 5000})
	for name, s := range map[string]*core.StateStream{
		"exclusive": r.exclusive(t.Context()), "task-owned": r.storage.CreateTaskOwnedStream(t.Context()),
	} {
		t.Run(name, func(t *testing.T) {
			writeMixed(t, s, noise(5000), loggedRand(t))
			handle, err := s.CloseAndGetHandle()
			require.NoError(t, err)
			require.IsType(t, (*core.BytesHandle)(nil), handle)
			require.Zero(t, r.faults.Count())
		})
	}
}

func TestStateStreamBuffersExactlyItsBufferAndWritesLargerSlicesThrough(t *testing.T) {
	// Flink: FsCheckpointStreamFactoryTest.testWriteFlushesIfAboveThreshold
	// Better: a write of exactly the buffer's size stays in the buffer, as the same bytes in smaller writes do.
	const buffer = 100
	r := newStreamRig(t, core.Options{WriteBuffer: buffer, InlineThreshold: core.NeverInline})
	s := r.exclusive(t.Context())
	sizes := func() (sizes []int) {
		for _, c := range r.faults.Calls() {
			if c.Op == faultfs.OpWrite {
				sizes = append(sizes, c.Size)
			}
		}
		return sizes
	}
	write := func(n int) {
		_, err := s.Write(noise(n))
		require.NoError(t, err)
	}
	write(buffer)
	require.Zero(t, r.faults.Count())
	write(1)
	require.Equal(t, []int{buffer}, sizes())
	write(buffer - 2)
	require.NoError(t, s.WriteByte(1))
	require.Equal(t, []int{buffer}, sizes(), "a full buffer waits for the next byte")
	write(0)
	require.Equal(t, []int{buffer}, sizes())
	write(3 * buffer)
	require.Equal(t, []int{buffer, buffer, 3 * buffer}, sizes(), "the buffer, then the slice itself")
	handle, err := s.CloseAndGetHandle()
	require.NoError(t, err)
	require.Equal(t, int64(5*buffer), handle.StateSize())
	require.Equal(t, 1, r.count(faultfs.OpCreate))
}

func TestStateStreamHandlesOfExclusiveStateAreRelativeAndOthersAbsolute(t *testing.T) {
	r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline})
	keep := func(s *core.StateStream) core.StreamHandle {
		_, err := s.Write([]byte("state"))
		require.NoError(t, err)
		handle, err := s.CloseAndGetHandle()
		require.NoError(t, err)
		requireState(t, r.mem, []byte("state"), handle)
		return handle
	}
	// Flink: FsCheckpointStreamFactoryTest.testExclusiveStateHasRelativePathHandles
	relative, ok := keep(r.exclusive(t.Context())).(*core.RelativeFileHandle)
	require.True(t, ok)
	require.Equal(t, "mem:"+r.location.CheckpointDir(), relative.Dir)
	require.True(t, core.IsStateFileName(relative.Name), relative.Name)

	// Flink: FsCheckpointStreamFactoryTest.testSharedStateHasAbsolutePathHandles
	shared, ok := keep(r.location.CreateStateStream(t.Context(), core.Shared)).(*core.FileHandle)
	require.True(t, ok)
	require.Equal(t, "mem:"+r.location.SharedDir(), path.Dir(shared.Path))

	owned, ok := keep(r.storage.CreateTaskOwnedStream(t.Context())).(*core.FileHandle)
	require.True(t, ok)
	require.Equal(t, "mem:"+r.location.TaskOwnedDir(), path.Dir(owned.Path))
}

func TestStateStreamFlushMakesAFileOnlyAboveTheThreshold(t *testing.T) {
	r := newStreamRig(t, core.Options{WriteBuffer: 100, InlineThreshold: 10})
	s := r.exclusive(t.Context())

	// Flink: FsCheckpointStreamFactoryTest.testFlushUnderThreshold
	_, err := s.Write(noise(10))
	require.NoError(t, err)
	require.NoError(t, s.Flush())
	require.NoError(t, s.Sync(), "better than Flink, which fails on a sync before there is a file")
	require.Zero(t, r.faults.Count())

	// Flink: FsCheckpointStreamFactoryTest.testFlushAboveThreshold
	require.NoError(t, s.WriteByte(1))
	require.NoError(t, s.Flush())
	require.Len(t, r.files(), 1)
	require.Equal(t, 1, r.count(faultfs.OpWrite))
	require.Zero(t, r.count(faultfs.OpSync))

	require.NoError(t, s.WriteByte(2))
	require.NoError(t, s.Flush())
	require.Equal(t, 2, r.count(faultfs.OpWrite), "once there is a file, everything goes to it")
	require.NoError(t, s.Close())
	r.requireNothingLeft(t)
}

func TestStateStreamSyncIncludesTheBuffer(t *testing.T) {
	r := newStreamRig(t, core.Options{WriteBuffer: 100, InlineThreshold: 10})
	s := r.exclusive(t.Context())
	defer func() { require.NoError(t, s.Close()) }()
	content := noise(57) // better than Flink, whose sync leaves the buffer out
	_, err := s.Write(content)
	require.NoError(t, err)
	require.NoError(t, s.Sync())
	clone := r.mem.CrashClone(memfs.CrashConfig{})
	require.Len(t, filesOf(clone), 1)
	require.Equal(t, content, stateOf(t, clone, &core.FileHandle{Path: filesOf(clone)[0], Size: -1}))
}

func TestStateStreamGoesOnWhereSyncIsNotOffered(t *testing.T) {
	mem := memfs.New(memfs.Options{Capabilities: &core.Capabilities{Durabilities: []core.Durability{core.Synced}, NoReplaceFiles: true}})
	r := newStreamRigOn(t, mem, core.Options{InlineThreshold: core.NeverInline}, nil)
	s := r.exclusive(t.Context())
	_, err := s.Write(noise(10))
	require.NoError(t, err)
	require.ErrorIs(t, s.Sync(), errors.ErrUnsupported)
	_, err = s.Write(noise(10))
	require.NoError(t, err)
	handle, err := s.CloseAndGetHandle()
	require.NoError(t, err)
	requireState(t, r.mem.CrashClone(memfs.CrashConfig{}), append(noise(10), noise(10)...), handle)
}

func TestStateStreamsOfOneDirectoryDoNotDisturbEachOther(t *testing.T) {
	// Flink: FsCheckpointStateOutputStreamTest.testMixedBelowAndAboveThreshold
	r := newStreamRig(t, core.Options{WriteBuffer: 15, InlineThreshold: 15})
	file1, file2, inline := r.exclusive(t.Context()), r.exclusive(t.Context()), r.exclusive(t.Context())
	empty, closed := r.exclusive(t.Context()), r.exclusive(t.Context())
	contents := [][]byte{noise(1274), noise(88), noise(15)}
	writeMixed(t, file1, contents[0], loggedRand(t))
	writeMixed(t, inline, contents[2], loggedRand(t))
	writeMixed(t, file2, contents[1], loggedRand(t))
	writeMixed(t, closed, contents[1], loggedRand(t))
	require.NoError(t, closed.Close())
	_, err := closed.CloseAndGetHandle()
	require.ErrorIs(t, err, fs.ErrClosed)

	var handles []core.StreamHandle
	for i, s := range []*core.StateStream{file1, file2, inline} {
		handle, err := s.CloseAndGetHandle()
		require.NoError(t, err)
		requireState(t, r.mem, contents[i], handle)
		handles = append(handles, handle)
	}
	require.IsType(t, (*core.BytesHandle)(nil), handles[2])
	require.Len(t, r.files(), 2)
	handle, err := empty.CloseAndGetHandle()
	require.NoError(t, err)
	require.Nil(t, handle)

	for _, handle := range append(handles, nil) {
		require.NoError(t, core.Discard(t.Context(), core.OnlyOn(r.mem), handle))
	}
	r.requireNothingLeft(t)
}

func TestStateStreamsManyAtOnceKeepTheirBytesApart(t *testing.T) {
	r := newStreamRig(t, core.Options{WriteBuffer: 512, InlineThreshold: 300})
	const streams = 64
	handles := make([]core.StreamHandle, streams)
	var group sync.WaitGroup
	for i := range streams {
		group.Go(func() {
			s := r.exclusive(context.Background())
			defer func() { _ = s.Close() }()
			content := noise(37 * i)
			for len(content) > 0 {
				n := min(len(content), 1+i*7)
				if _, err := s.Write(content[:n]); err != nil {
					return
				}
				content = content[n:]
			}
			handles[i], _ = s.CloseAndGetHandle() // a missing handle is found below
		})
	}
	group.Wait()
	for i, handle := range handles {
		requireState(t, r.mem, noise(37*i), handle)
	}
	require.Empty(t, r.mem.OpenFiles())
}

func TestStateStreamInlineHandleHasTheFormOfAFileInTheDirectory(t *testing.T) {
	r := newStreamRig(t, core.Options{})
	s := r.exclusive(t.Context())
	_, err := s.Write([]byte("x"))
	require.NoError(t, err)
	handle, err := s.CloseAndGetHandle()
	require.NoError(t, err)
	inline, ok := handle.(*core.BytesHandle)
	require.True(t, ok)
	dir, name := path.Split(inline.Name)
	require.Equal(t, "mem:"+r.location.CheckpointDir(), strings.TrimSuffix(dir, "/"))
	require.True(t, core.IsStateFileName(name), name)
	require.Empty(t, r.files())
}
