package metadata

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// large makes a checkpoint with a keyed and an operator handle for each subtask. A program on Flink's own classes makes the
// same: written by Flink 2.3.0 as version 6, 100 operators of 1,000 subtasks have largeSum.
func large(operators, subtasks int) *Checkpoint {
	const maxParallelism = MaxKeyGroups
	pair := func(high, low uint64) (id uuid.UUID) {
		binary.BigEndian.PutUint64(id[:], high)
		binary.BigEndian.PutUint64(id[8:], low)
		return id
	}
	file := func(n uint64, size int64) *core.RelativeFileHandle {
		return &core.RelativeFileHandle{Name: pair(0x4000, 1<<63|n).String(), Size: size}
	}
	c := &Checkpoint{ID: 7, Properties: CheckpointProperties(RetainOnCancellation)}
	n := uint64(0)
	for o := range operators {
		op := OperatorState{
			Name: fmt.Sprintf("operator %d", o), UID: fmt.Sprintf("uid-%d", o), ID: OperatorID(pair(uint64(o), ^uint64(o))),
			Parallelism: subtasks, MaxParallelism: maxParallelism,
		}
		for s := range subtasks {
			from, end := s*maxParallelism/subtasks, (s+1)*maxParallelism/subtasks
			offsets := make([]int64, end-from)
			for i := range offsets {
				offsets[i] = 100 + 1000*int64(i)
			}
			keyed := file(n, 1_000_000+int64(n)+1)
			list := file(n+1, 10_000+int64(n)+2)
			n += 2
			op.Subtasks = append(op.Subtasks, Subtask{Index: s, State: &SubtaskState{
				ManagedKeyed: &KeyGroupsHandle{
					Range: KeyGroupRange{Start: int32(from), Count: int32(end - from)}, Offsets: offsets, Delegate: keyed,
					ID: pair(1, n).String(),
				},
				ManagedOperator: NewOperatorHandle([]NamedState{{Name: "buffered-elements", Offsets: []int64{42, 43}}}, list),
			}})
		}
		c.Operators = append(c.Operators, op)
	}
	return c
}

const (
	largeLength = 46_920_008
	largeSum    = "e0a558aa"
)

func TestLargeFileIsTheOneThatFlinkWrites(t *testing.T) {
	data, err := Append(nil, large(100, 1000), WriteOptions{Version: 6})
	require.NoError(t, err)
	require.Len(t, data, largeLength)
	sum := sha256.Sum256(data)
	require.Equal(t, largeSum, hex.EncodeToString(sum[:4]))
	t.Log(hex.EncodeToString(sum[:]))
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestParsedLargeFileTakesLittleMemory(t *testing.T) {
	data, err := Append(nil, large(20, 1000), WriteOptions{Version: 6})
	require.NoError(t, err)
	before := liveHeap()
	c, err := Parse(data, "")
	require.NoError(t, err)
	live := liveHeap() - before
	perByte := float64(live) / float64(len(data))
	t.Logf("%.2f bytes of heap per byte of input", perByte)
	require.Less(t, perByte, 2.5)
	runtime.KeepAlive(c)
	runtime.KeepAlive(data)
}

func BenchmarkParse(b *testing.B) {
	data, err := Append(nil, large(100, 1000), WriteOptions{Version: 6})
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data, "file:/dir"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	c := large(100, 1000)
	for b.Loop() {
		data, err := Append(nil, c, WriteOptions{Version: 6})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(data)))
	}
}

func BenchmarkWrite(b *testing.B) {
	c := large(100, 1000)
	var n countingWriter
	for b.Loop() {
		n = 0
		if err := Write(&n, c, WriteOptions{Version: 6}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(n))
}

type countingWriter int64

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}

// withSums gives every file of c checksums, as the files of this project have them.
func withSums(c *Checkpoint) *Checkpoint {
	for _, o := range c.Operators {
		for _, s := range o.Subtasks {
			for _, h := range []core.StreamHandle{s.State.ManagedOperator.Delegate, s.State.ManagedKeyed.(*KeyGroupsHandle).Delegate} { //nolint:forcetypeassert // made so by large
				file := h.(*core.RelativeFileHandle) //nolint:forcetypeassert // made so by large
				file.Checksums = &core.Checksums{ChunkSize: 1 << 22, Sums: []uint32{uint32(file.Size)}}
			}
		}
	}
	return c
}

func BenchmarkWriteWithFooter(b *testing.B) {
	c := withSums(large(100, 1000))
	var n countingWriter
	for b.Loop() {
		n = 0
		if err := Write(&n, c, WriteOptions{Footer: &Footer{}}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(n))
}

func BenchmarkParseWithFooter(b *testing.B) {
	data, err := Append(nil, withSums(large(100, 1000)), WriteOptions{Footer: &Footer{}})
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse(data, "file:/dir"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkObjects(b *testing.B) {
	data, err := Append(nil, large(100, 1000), WriteOptions{Version: 6})
	require.NoError(b, err)
	c, err := Parse(data, "file:/dir")
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Objects(c); err != nil {
			b.Fatal(err)
		}
	}
}
