package metadata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// scanned is what a visitor saw: every subtask as the bytes of a task snapshot, since it may not be kept.
type scanned struct {
	operators []OperatorState // without subtasks
	subtasks  []string
}

func (s *scanned) visitor(t testing.TB) Visitor {
	return Visitor{
		Operator: func(number int, o *OperatorState) error {
			require.Equal(t, len(s.operators), number)
			kept := *o
			if o.Coordinator != nil {
				kept.Coordinator = &core.BytesHandle{Name: o.Coordinator.Name, Data: bytes.Clone(o.Coordinator.Data)}
			}
			s.operators = append(s.operators, kept)
			return nil
		},
		Subtask: func(sub *Subtask) error {
			s.subtasks = append(s.subtasks, snapshotOf(t, len(s.operators)-1, sub))
			return nil
		},
	}
}

func snapshotOf(t testing.TB, operator int, s *Subtask) string {
	if s.State == nil {
		return fmt.Sprintf("%d/%d finished", operator, s.Index)
	}
	data, err := AppendSubtask(nil, s.State)
	require.NoError(t, err)
	return fmt.Sprintf("%d/%d %x", operator, s.Index, data)
}

// scanWith reads data through a window of few bytes, so that everything is on a border at some time.
func scanWith(t testing.TB, data []byte, window int, visit Visitor) (*Checkpoint, error) {
	s := &scan{src: bytes.NewReader(data), size: int64(len(data)), end: int64(len(data)), dir: "file:/dir", buf: make([]byte, window)}
	return s.run(visit)
}

// requireScanIsParse reads data both ways.
func requireScanIsParse(t testing.TB, data []byte, window int) {
	t.Helper()
	want, wantErr := Parse(data, "file:/dir")
	var seen scanned
	got, err := scanWith(t, data, window, seen.visitor(t))
	if wantErr != nil {
		require.Error(t, err)
		for _, sentinel := range []error{core.ErrCorrupt, core.ErrUnsupportedVersion} {
			require.Equal(t, errors.Is(wantErr, sentinel), errors.Is(err, sentinel), "%v\n%v", wantErr, err)
		}
		return
	}
	require.NoError(t, err)
	var subtasks []string
	for i := range want.Operators {
		o := &want.Operators[i]
		for k := range o.Subtasks {
			subtasks = append(subtasks, snapshotOf(t, i, &o.Subtasks[k]))
		}
		o.Subtasks = nil
	}
	require.Equal(t, subtasks, seen.subtasks)
	require.Equal(t, len(want.Operators), len(seen.operators))
	for i := range want.Operators {
		require.Equal(t, want.Operators[i], seen.operators[i])
	}
	want.Operators = nil
	require.Equal(t, want, got)
}

func TestScanSeesWhatParseMakes(t *testing.T) {
	for _, g := range ownGolden(t) {
		t.Run(g.kind+"/"+g.name, func(t *testing.T) {
			data := g.data(t)
			for _, window := range []int{64, 1000, windowBytes} {
				requireScanIsParse(t, data, window)
			}
		})
	}
	m := newMaker(t)
	for range 300 {
		data, err := Append(nil, m.checkpoint(), WriteOptions{Version: 3 + m.IntN(4), Footer: m.footer()})
		require.NoError(t, err)
		requireScanIsParse(t, data, 64+m.IntN(500))
	}
}

func TestScanRefusesWhatParseRefuses(t *testing.T) {
	files := everything(t)
	m := newMaker(t)
	for i := range 5 {
		data, err := Append(nil, m.checkpoint(), WriteOptions{Version: 3 + i%4, Footer: &Footer{}})
		require.NoError(t, err)
		files[fmt.Sprint("with footer ", i)] = data
	}
	for name, data := range greedy(1000) {
		requireScanIsParse(t, data, 64)
		files[name] = data
	}
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			for n := 0; n < len(data); n += 1 + len(data)/100 {
				requireScanIsParse(t, data[:n:n], 64)
			}
			for i := 0; i < len(data); i += 1 + len(data)/100 {
				bit := byte(1) << (i % 8)
				data[i] ^= bit
				requireScanIsParse(t, data, 200)
				data[i] ^= bit
			}
		})
	}
}

func TestScanOfADamagedFileBlamesItsChecksum(t *testing.T) {
	data, _ := writeNoted(t, 4)
	for at := headerLength; at < headerLength+100; at++ {
		data[at] ^= 0x10
		_, want := Parse(data, "")
		_, err := Scan(bytes.NewReader(data), int64(len(data)), "", Visitor{})
		require.Equal(t, want, err)
		data[at] ^= 0x10
	}
}

// brokenReader fails at a place.
type brokenReader struct {
	io.ReaderAt
	at int64
}

func (r brokenReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > r.at {
		return 0, fs.ErrPermission
	}
	return r.ReaderAt.ReadAt(p, off)
}

func TestScanReturnsTheErrorOfTheSourceAndOfTheVisitor(t *testing.T) {
	files := everything(t)
	files["with footer"], _ = writeNoted(t, 4)
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			for at := range len(data) {
				if at%7 != 0 {
					continue
				}
				s := &scan{src: brokenReader{bytes.NewReader(data), int64(at)}, size: int64(len(data)), end: int64(len(data)), buf: make([]byte, 64)}
				_, err := s.run(Visitor{})
				require.ErrorIs(t, err, fs.ErrPermission)
				require.NotErrorIs(t, err, core.ErrCorrupt)
			}
			_, err := Scan(bytes.NewReader(data), int64(len(data))+1, "", Visitor{})
			require.ErrorIs(t, err, core.ErrCorrupt, "a file that is shorter than its size")
			mine := errors.New("mine")
			_, err = Scan(bytes.NewReader(data), int64(len(data)), "", Visitor{Operator: func(int, *OperatorState) error { return mine }})
			require.ErrorIs(t, err, mine)
			calls := 0
			_, err = Scan(bytes.NewReader(data), int64(len(data)), "", Visitor{Subtask: func(*Subtask) error { calls++; return mine }})
			require.ErrorIs(t, err, mine)
			require.Equal(t, 1, calls)
		})
	}
}

func TestChecksumsOutOfOrderAreCorrupt(t *testing.T) {
	sums := func(n uint32) *core.Checksums { return &core.Checksums{ChunkSize: 4, Sums: []uint32{n}} }
	s := &SubtaskState{}
	for i := range 12 {
		file := &core.FileHandle{Path: fmt.Sprint("/f", i), Size: 4, Checksums: sums(uint32(i))}
		s.InputChannels = append(s.InputChannels, NewChannelHandle(0, Channel{}, file))
	}
	data, err := Append(nil, single(s), WriteOptions{Footer: &Footer{}})
	require.NoError(t, err)
	requireScanIsParse(t, data, 64)
	foot := len(data) - int(binary.BigEndian.Uint32(data[len(data)-4:]))
	last := len(data) - footerTail - 4
	for index, allowed := range map[uint32]bool{11: true, 10: true, 3: true, 2: false, 0: false, 12: false, math.MaxUint32: false} {
		changed := bytes.Clone(data)
		binary.BigEndian.PutUint32(changed[last:], index)
		reseal(changed, foot)
		_, err := Parse(changed, "")
		require.Equal(t, allowed, err == nil, "%d: %v", index, err)
		requireScanIsParse(t, changed, 64)
	}
}

func TestScanTakesMemoryForOneSubtaskOnly(t *testing.T) {
	data, err := Append(nil, withSums(large(40, 1000)), WriteOptions{Footer: &Footer{}})
	require.NoError(t, err)
	most, calls := int64(0), 0
	before := liveHeap()
	_, err = Scan(bytes.NewReader(data), int64(len(data)), "file:/dir", Visitor{Subtask: func(*Subtask) error {
		if calls++; calls%5000 == 0 {
			most = max(most, liveHeap()-before)
		}
		return nil
	}})
	require.NoError(t, err)
	t.Logf("%d bytes of heap for a file of %d", most, len(data))
	require.Less(t, most, int64(2<<20))
	runtime.KeepAlive(data)
}

func BenchmarkScan(b *testing.B) {
	data, err := Append(nil, large(100, 1000), WriteOptions{Version: 6})
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Scan(bytes.NewReader(data), int64(len(data)), "file:/dir", Visitor{}); err != nil {
			b.Fatal(err)
		}
	}
}

// What is counted is all that is ever allocated. Files of version 3 are read several times, and each time it is given back.
func TestMemoryOfAScanForHostileFilesIsBounded(t *testing.T) {
	for name, data := range greedy(50_000) {
		got := allocated(func() {
			_, _ = Scan(bytes.NewReader(data), int64(len(data)), "file:/dir", Visitor{})
		})
		most := 16*int64(len(data)) + 1<<20
		if binary.BigEndian.Uint32(data[4:]) == 3 {
			most += 16 * int64(len(data))
		}
		require.LessOrEqual(t, got, most, "%s", name)
	}
}
