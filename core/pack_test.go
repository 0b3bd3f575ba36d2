package core_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func newPacker(t testing.TB, r *streamRig, opts core.PackOptions) *core.Packer {
	t.Helper()
	if opts.Worker == "" {
		opts.Worker = "w1"
	}
	packer, err := r.storage.NewPacker(opts)
	require.NoError(t, err)
	return packer
}

func (r *streamRig) pack(t testing.TB, opts core.PackOptions) *core.Pack {
	t.Helper()
	return newPacker(t, r, opts).Begin(t.Context(), 7, r.location)
}

// writePacked writes one state in pieces.
func writePacked(pack *core.Pack, scope core.Scope, state []byte) (core.StreamHandle, error) {
	stream := pack.CreateStateStream(context.Background(), scope)
	for rest := state; len(rest) > 0; {
		n := min(len(rest), 3000)
		if _, err := stream.Write(rest[:n]); err != nil {
			return nil, errors.Join(err, stream.Close())
		}
		rest = rest[n:]
	}
	handle, err := stream.CloseAndGetHandle()
	return handle, errors.Join(err, stream.Close())
}

var neverInline = core.Options{InlineThreshold: core.NeverInline}

func TestStatesOfAWorkerAreSegmentsOfOneFileForEachScope(t *testing.T) {
	r := newStreamRig(t, neverInline)
	packer := newPacker(t, r, core.PackOptions{})
	for round := range 2 {
		before := len(r.faults.Calls())
		pack := packer.Begin(t.Context(), 7, r.location)
		handles := map[int]core.StreamHandle{}
		for i := range 1000 {
			var err error
			handles[i], err = writePacked(pack, core.Scope(i%2), noise(100+i))
			require.NoError(t, err)
		}
		require.NoError(t, pack.Commit())
		files := map[string]core.Scope{}
		for i, handle := range handles {
			h, ok := handle.(*core.SegmentHandle)
			require.True(t, ok)
			require.Equal(t, core.Scope(i%2), h.Scope)
			files[h.Path] = h.Scope
			requireState(t, r.mem, noise(100+i), h)
		}
		require.Len(t, files, 2)
		for file, scope := range files {
			dir := map[core.Scope]string{core.Exclusive: packer.TaskOwnedDir(), core.Shared: packer.SharedDir()}[scope]
			require.Equal(t, dir, path.Dir(file))
			require.True(t, core.IsStateFileName(path.Base(file)))
		}
		made := map[faultfs.Op]int{}
		for _, c := range r.faults.Calls()[before:] {
			made[c.Op]++
		}
		require.Equal(t, 2, made[faultfs.OpClose])
		if round > 0 { // the directories are there
			require.Equal(t, 2, made[faultfs.OpCreate])
			require.Zero(t, made[faultfs.OpMkdirAll])
		}
	}
	base := r.storage.JobDir()
	name := "/job_" + rigJob.String() + "_tm_hdfsckpt-w1"
	require.Equal(t, core.Qualify(r.mem.URI(), base+"/taskowned"+name), packer.TaskOwnedDir())
	require.Equal(t, core.Qualify(r.mem.URI(), base+"/shared"+name), packer.SharedDir())
}

func TestAPackedHandleNamesNoFileBeforeTheCommit(t *testing.T) {
	r := newStreamRig(t, neverInline)
	pack := r.pack(t, core.PackOptions{})
	handle, err := writePacked(pack, core.Exclusive, noise(10))
	require.NoError(t, err)
	require.Empty(t, handle.(*core.SegmentHandle).Path) //nolint:forcetypeassert // nothing else is packed
	_, err = core.OpenState(t.Context(), core.OnlyOn(r.mem), handle)
	require.ErrorIs(t, err, fs.ErrInvalid)
	_, err = pack.Reuse(t.Context(), []core.StreamHandle{&core.SegmentHandle{Scope: core.Shared, Size: 1}})
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.NoError(t, pack.Close())
	require.Empty(t, handle.(*core.SegmentHandle).Path) //nolint:forcetypeassert // as above
	r.requireNothingLeft(t)
	require.ErrorIs(t, pack.Commit(), fs.ErrClosed)
}

func TestWhatIsInlineOrEmptyIsNotPacked(t *testing.T) {
	r := newStreamRig(t, core.Options{InlineThreshold: 100})
	pack := r.pack(t, core.PackOptions{})
	for size, want := range map[int]core.StreamHandle{0: nil, 1: &core.BytesHandle{}, 100: &core.BytesHandle{}, 101: &core.SegmentHandle{}} {
		handle, err := writePacked(pack, core.Shared, noise(size))
		require.NoError(t, err)
		require.IsType(t, want, handle)
	}
	require.NoError(t, pack.Commit())
	require.Len(t, r.files(), 1)
	idle := r.pack(t, core.PackOptions{})
	_, err := writePacked(idle, core.Exclusive, noise(7))
	require.NoError(t, err)
	require.NoError(t, idle.Commit())
	require.Len(t, r.files(), 1, "a pack without segments makes no file")
}

func TestALargeStateTakesAFileForItselfOnlyWhileItIsWritten(t *testing.T) {
	const large = 5 << 20
	r := newStreamRig(t, neverInline)
	big := make([]byte, large)
	copy(big, noise(3<<20))
	pack := r.pack(t, core.PackOptions{})
	first, err := writePacked(pack, core.Exclusive, big)
	require.NoError(t, err)
	second, err := writePacked(pack, core.Exclusive, big)
	require.NoError(t, err)
	require.Len(t, r.files(), 1, "one after the other")

	held := pack.CreateStateStream(t.Context(), core.Exclusive)
	_, err = held.Write(big)
	require.NoError(t, err)
	small, err := writePacked(pack, core.Exclusive, noise(50))
	require.NoError(t, err)
	require.Len(t, r.files(), 2)
	_, err = held.Write(noise(33))
	require.NoError(t, err)
	third, err := held.CloseAndGetHandle()
	require.NoError(t, err)
	_, err = writePacked(pack, core.Exclusive, big)
	require.NoError(t, err)
	require.Len(t, r.files(), 2)
	require.NoError(t, pack.Commit())
	requireState(t, r.mem, big, first)
	requireState(t, r.mem, big, second)
	requireState(t, r.mem, append(big[:large:large], noise(33)...), third)
	requireState(t, r.mem, noise(50), small)
}

func TestBufferedStatesAreBoundedInMemory(t *testing.T) {
	r := newStreamRig(t, neverInline)
	packer := newPacker(t, r, core.PackOptions{Memory: 100 << 10})
	pack := packer.Begin(t.Context(), 7, r.location)
	var streams []*core.StateStream
	for range 10 {
		s := pack.CreateStateStream(t.Context(), core.Shared)
		_, err := s.Write(noise(60 << 10))
		require.NoError(t, err)
		streams = append(streams, s)
	}
	require.Len(t, r.files(), 9, "one is buffered, the others have spilled")
	for _, s := range streams {
		handle, err := s.CloseAndGetHandle()
		require.NoError(t, err)
		defer requireState(t, r.mem, noise(60<<10), handle)
	}
	require.NoError(t, pack.Commit())
	require.Len(t, r.files(), 10, "the buffered one found the others' files held")
	next := packer.Begin(t.Context(), 8, r.location)
	s := next.CreateStateStream(t.Context(), core.Shared)
	_, err := s.Write(noise(60 << 10))
	require.NoError(t, err)
	require.Len(t, r.files(), 10, "the memory was given back")
	require.NoError(t, s.Close())
	require.NoError(t, next.Close())
}

func TestAStateThatIsGivenUpLeavesTheOthers(t *testing.T) {
	r := newStreamRig(t, neverInline)
	pack := r.pack(t, core.PackOptions{})
	given := pack.CreateStateStream(t.Context(), core.Exclusive)
	_, err := given.Write(noise(3 << 20))
	require.NoError(t, err)
	_, err = given.Write(noise(2 << 20)) // beyond the buffer
	require.NoError(t, err)
	require.NoError(t, given.Close())
	alone := pack.CreateStateStream(t.Context(), core.Shared)
	_, err = alone.Write(noise(3 << 20))
	require.NoError(t, err)
	_, err = alone.Write(noise(2 << 20))
	require.NoError(t, err)
	require.NoError(t, alone.Close())
	handle, err := writePacked(pack, core.Exclusive, noise(77))
	require.NoError(t, err)
	require.NoError(t, pack.Commit())
	requireState(t, r.mem, noise(77), handle)
	require.Len(t, r.files(), 1, "the shared file held nothing else")
}

func TestAPackWithAStreamInItsFileIsNotCommitted(t *testing.T) {
	r := newStreamRig(t, neverInline)
	pack := r.pack(t, core.PackOptions{Memory: 1})
	s := pack.CreateStateStream(t.Context(), core.Exclusive)
	_, err := s.Write(noise(200))
	require.NoError(t, err)
	require.NoError(t, s.Flush())
	err = pack.Commit()
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.EqualError(t, pack.Commit(), err.Error(), "the first outcome is final")
	_, err = s.CloseAndGetHandle()
	require.Error(t, err)
	r.requireNothingLeft(t)
}

func TestTheEndingsOfAPack(t *testing.T) {
	r := newStreamRig(t, neverInline)
	pack := r.pack(t, core.PackOptions{})
	handle, err := writePacked(pack, core.Exclusive, noise(9))
	require.NoError(t, err)
	open := pack.CreateStateStream(t.Context(), core.Exclusive)
	_, err = open.Write(noise(5))
	require.NoError(t, err)
	require.NoError(t, pack.Commit())
	require.NoError(t, pack.Close(), "after a commit it does nothing")
	require.ErrorIs(t, pack.Commit(), fs.ErrClosed)
	_, err = open.CloseAndGetHandle()
	require.ErrorIs(t, err, fs.ErrClosed)
	requireState(t, r.mem, noise(9), handle)

	ctx, cancel := context.WithCancel(t.Context())
	late := newPacker(t, r, core.PackOptions{}).Begin(ctx, 8, r.location)
	_, err = writePacked(late, core.Exclusive, noise(9))
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, late.Commit(), context.Canceled)
	require.NoError(t, late.Close())
	require.Len(t, r.files(), 1)
	require.Empty(t, r.faults.OpenFiles())
}

func TestSyncOfAPackedStreamIsTheCommits(t *testing.T) {
	r := newStreamRig(t, neverInline)
	pack := r.pack(t, core.PackOptions{})
	s := pack.CreateStateStream(t.Context(), core.Shared)
	_, err := s.Write(noise(20))
	require.NoError(t, err)
	require.ErrorIs(t, s.Sync(), errors.ErrUnsupported)
	handle, err := s.CloseAndGetHandle()
	require.NoError(t, err, "the stream goes on")
	require.NoError(t, pack.Commit())
	requireState(t, r.mem, noise(20), handle)
}

func TestStatesAreWrittenAtTheSameTimeIntoSeveralPacks(t *testing.T) {
	r := newStreamRig(t, neverInline)
	packer := newPacker(t, r, core.PackOptions{})
	var all sync.WaitGroup
	for id := range 4 {
		pack := packer.Begin(t.Context(), int64(id), r.location)
		handles := make([]core.StreamHandle, 100)
		errs := make([]error, 8)
		all.Go(func() {
			var tasks sync.WaitGroup
			for task := range 8 {
				tasks.Go(func() {
					for i := task; i < len(handles); i += 8 {
						var err error
						handles[i], err = writePacked(pack, core.Scope(i%2), noise(1000*id+i+1))
						errs[task] = errors.Join(errs[task], err)
					}
				})
			}
			tasks.Wait()
			require.NoError(t, errors.Join(errs...))
			require.NoError(t, pack.Commit())
			for i, handle := range handles {
				requireState(t, r.mem, noise(1000*id+i+1), handle)
			}
		})
	}
	all.Wait()
	require.Len(t, r.files(), 8)
}

func TestSavepointsAreNotPacked(t *testing.T) {
	r := newStreamRig(t, core.Options{InlineThreshold: core.NeverInline})
	dir := "/savepoints/savepoint-aaaaaa-bbbbbbbbbbbb"
	require.NoError(t, r.mem.MkdirAll(t.Context(), dir))
	location, err := r.storage.ResolveLocation(t.Context(), 7, core.EncodeReference(core.Qualify(r.mem.URI(), dir)))
	require.NoError(t, err)
	packer := newPacker(t, r, core.PackOptions{})
	packed := packer.Begin(t.Context(), 6, r.location)
	shared, err := writePacked(packed, core.Shared, noise(12))
	require.NoError(t, err)
	require.NoError(t, packed.Commit())

	pack := packer.Begin(t.Context(), 7, location)
	handle, err := writePacked(pack, core.Shared, noise(11))
	require.NoError(t, err)
	reused, err := pack.Reuse(t.Context(), []core.StreamHandle{shared, shared})
	require.NoError(t, err)
	require.NoError(t, pack.Commit())
	require.IsType(t, &core.RelativeFileHandle{}, handle)
	require.IsType(t, &core.RelativeFileHandle{}, reused[0], "a savepoint owns all its files")
	require.Same(t, reused[0], reused[1])
	requireState(t, r.mem, noise(11), handle)
	requireState(t, r.mem, noise(12), reused[0])
}

func TestTheFilesOfAnAbortedCheckpointGo(t *testing.T) {
	r := newStreamRig(t, neverInline)
	packer := newPacker(t, r, core.PackOptions{})
	for id := range int64(3) {
		pack := packer.Begin(t.Context(), id, r.location)
		for _, scope := range []core.Scope{core.Exclusive, core.Shared} {
			_, err := writePacked(pack, scope, noise(10))
			require.NoError(t, err)
		}
		require.NoError(t, pack.Commit())
	}
	require.NoError(t, packer.Aborted(t.Context(), 1))
	require.Len(t, r.files(), 4)
	require.NoError(t, packer.Aborted(t.Context(), 1))
	require.NoError(t, packer.Aborted(t.Context(), 9))
	require.Len(t, r.files(), 4)
}

func TestPackOptionsAreCheckedAllAtOnce(t *testing.T) {
	r := newStreamRig(t, core.Options{})
	_, err := r.storage.NewPacker(core.PackOptions{Worker: "a/b", Memory: -1, MaxAmplification: 0.5})
	require.ErrorIs(t, err, fs.ErrInvalid)
	for _, field := range []string{"Worker", "Memory", "MaxAmplification"} {
		require.ErrorContains(t, err, "PackOptions."+field)
	}
	for _, worker := range []string{"", "ä", strings.Repeat("x", 101), "a:b", "a b"} {
		_, err := r.storage.NewPacker(core.PackOptions{Worker: worker})
		require.ErrorIs(t, err, fs.ErrInvalid, "%q", worker)
	}
	entropy, err := core.WithEntropy(memfs.New(memfs.Options{}), "_entropy_", 4)
	require.NoError(t, err)
	storage, err := core.NewStorage(entropy, "/_entropy_/ckpt", rigJob, core.Options{})
	require.NoError(t, err)
	_, err = storage.NewPacker(core.PackOptions{Worker: "w"})
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestNamesOfPackDirectories(t *testing.T) {
	job := rigJob.String()
	for name, want := range map[string]bool{
		"job_" + job + "_tm_hdfsckpt-w1":       true,
		"job_" + job + "_tm_hdfsckpt-a.b_c-9":  true,
		"job_" + job + "_tm_hdfsckpt-":         false,
		"job_" + job + "_tm_container_01":      false,
		"job_" + job + "_op_x_0_2":             false,
		"job_" + job[1:] + "_tm_hdfsckpt-w1":   false,
		"xob_" + job + "_tm_hdfsckpt-w1":       false,
		"job_" + job + "_tm_hdfsckpt-w1/../up": false,
	} {
		require.Equal(t, want, core.IsPackDirName(name), name)
	}
}

// damagedSegments packs ten states and changes the file by damage.
func damagedSegments(t *testing.T, damage func(data []byte) []byte) (*streamRig, []core.StreamHandle) {
	t.Helper()
	r := newStreamRig(t, neverInline)
	pack := r.pack(t, core.PackOptions{})
	var handles []core.StreamHandle
	for i := range 10 {
		handle, err := writePacked(pack, core.Shared, noise(100+i))
		require.NoError(t, err)
		handles = append(handles, handle)
	}
	require.NoError(t, pack.Commit())
	name := r.files()[0]
	src, err := r.mem.Open(t.Context(), name)
	require.NoError(t, err)
	data, err := io.ReadAll(src)
	require.NoError(t, errors.Join(err, src.Close(), r.mem.Remove(t.Context(), name)))
	w, err := r.mem.Create(t.Context(), name, core.CreateOptions{})
	require.NoError(t, err)
	_, err = w.Write(damage(data))
	require.NoError(t, errors.Join(err, w.Close()))
	return r, handles
}

func TestADamagedSegmentDoesNotHideInItsFile(t *testing.T) {
	open := func(r *streamRig, h core.StreamHandle) error {
		reader, err := core.OpenState(t.Context(), core.OnlyOn(r.mem), h)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, reader)
		return errors.Join(err, reader.Close())
	}
	r, handles := damagedSegments(t, func(data []byte) []byte {
		data[150] ^= 1
		return data
	})
	for i, h := range handles {
		if i == 1 {
			require.ErrorIs(t, open(r, h), core.ErrCorrupt)
			require.ErrorContains(t, open(r, h), "offset 100 does not match")
			continue
		}
		require.NoError(t, open(r, h), "segment %d", i)
	}
	r, handles = damagedSegments(t, func(data []byte) []byte { return data[:250] })
	for i, h := range handles {
		if i < 2 {
			require.NoError(t, open(r, h))
			continue
		}
		require.ErrorIs(t, open(r, h), core.ErrCorrupt, "segment %d", i)
	}
}

func TestTheSegmentsOfAnObjectAreReadFromOneOpenFile(t *testing.T) {
	r, handles := damagedSegments(t, func(data []byte) []byte { return data })
	object := core.Object{Size: -1}
	for _, handle := range handles {
		h := handle.(*core.SegmentHandle) //nolint:forcetypeassert // nothing else is packed
		object.Path = h.Path
		object.Segments = append(object.Segments, core.Segment{Offset: h.Offset, Size: h.Size, Checksums: h.Checksums})
		object.AtLeast = object.Segments[len(object.Segments)-1].End()
	}
	opens := r.count(faultfs.OpOpen)
	file, err := core.OpenObject(t.Context(), core.OnlyOn(r.faults), object)
	require.NoError(t, err)
	for i, s := range object.Segments {
		part, err := file.Segment(s)
		require.NoError(t, err)
		require.True(t, part.Verified())
		data, err := io.ReadAll(part)
		require.NoError(t, err)
		require.Equal(t, noise(100+i), data)
		n, err := part.ReadAt(make([]byte, 10), part.Size()-4)
		require.Equal(t, 4, n)
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, part.Close())
	}
	for _, bad := range []core.Segment{{Offset: -1}, {Offset: object.AtLeast, Size: 1}, {Size: object.AtLeast + 1}} {
		_, err := file.Segment(bad)
		require.ErrorIs(t, err, core.ErrCorrupt, fmt.Sprint(bad))
	}
	rest, err := file.Segment(core.Segment{Offset: object.AtLeast - 5, Size: -1})
	require.NoError(t, err)
	data, err := io.ReadAll(rest)
	require.NoError(t, err)
	require.Len(t, data, 5)
	require.NoError(t, file.Close())
	require.Equal(t, opens+1, r.count(faultfs.OpOpen))
	object.AtLeast++
	_, err = core.OpenObject(t.Context(), core.OnlyOn(r.mem), object)
	require.ErrorIs(t, err, core.ErrCorrupt)
}
