package metadata

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// maker makes random values that can be written.
type maker struct {
	*rand.Rand
	// current: only what Flink writes today, and writes again as it was; else historic layouts too.
	current bool
}

// newMaker logs the seed, so that a failure can be repeated.
func newMaker(t testing.TB) maker {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return maker{Rand: rand.New(rand.NewPCG(seed, 0))}
}

func (m maker) chance(percent int) bool { return m.IntN(100) < percent }

func pick[T any](m maker, values ...T) T { return values[m.IntN(len(values))] }

// several returns up to most values, nil for none.
func several[T any](m maker, most int, one func() T) []T {
	var list []T
	for range m.IntN(most + 1) {
		list = append(list, one())
	}
	return list
}

func (m maker) text() string {
	return pick(m, "", "a", "000012.sst", "state", "buffered-elements", "n\x00ul", "é文字", "a😀b", "\xed\xa0\x80", "x\xed\xb0\x80y",
		"\x7f\u0080\u07ff\u0800\uffff", `quote " \ /`, fmt.Sprintf("%x", m.Uint64()))
}

// fileName is one that Flink's path class leaves as it is, or any text.
func (m maker) fileName() string {
	if m.current {
		return uuid.New().String()
	}
	return m.text()
}

func (m maker) size() int64 {
	return pick(m, -1, 0, 1, 1<<20, int64(m.Uint32()), math.MaxInt64)
}

func (m maker) long() int64 {
	return pick(m, 0, -1, 1, math.MaxInt64, math.MinInt64, int64(m.Uint64()))
}

func (m maker) longs(most int) []int64 { return several(m, most, m.long) }

func (m maker) bytes() []byte { return several(m, 80, func() byte { return byte(m.Uint32()) }) }

func (m maker) sums(size int64) *core.Checksums {
	if m.chance(50) || size > 1<<20 {
		return nil
	}
	c := &core.Checksums{ChunkSize: 1 + m.IntN(1<<20)}
	if size > 0 {
		c.ChunkSize = max(c.ChunkSize, int(size/4)+1)
		for range (size + int64(c.ChunkSize) - 1) / int64(c.ChunkSize) {
			c.Sums = append(c.Sums, m.Uint32())
		}
	}
	return c
}

func (m maker) inline() *core.BytesHandle { return &core.BytesHandle{Name: m.text(), Data: m.bytes()} }

func (m maker) segment() *SegmentHandle {
	size := m.size()
	return &SegmentHandle{
		Path: "hdfs://nn/taskowned/" + m.fileName(), Offset: int64(m.Uint32()), Size: size, Scope: pick(m, ScopeExclusive, ScopeShared),
		LogicalID: m.text(), Checksums: m.sums(size),
	}
}

func (m maker) stream(depth int) core.StreamHandle {
	size := m.size()
	switch m.IntN(8) {
	case 0, 1:
		return m.inline()
	case 2, 3:
		return &core.FileHandle{Path: "hdfs://nn/shared/" + m.fileName(), Size: size, Checksums: m.sums(size)}
	case 4, 5:
		return &core.RelativeFileHandle{Dir: "file:/dir", Name: "name " + m.fileName(), Size: size, Checksums: m.sums(size)}
	case 6:
		if m.chance(30) {
			return EmptySegment{}
		}
		return m.segment()
	}
	if depth > 3 {
		return m.inline()
	}
	h := m.keyGroups(depth + 1)
	return &KeyGroupsHandle{Range: h.Range, Offsets: h.Offsets, Delegate: h.Delegate}
}

func (m maker) keyGroupRange() KeyGroupRange {
	if m.current {
		return KeyGroupRange{Start: int32(m.IntN(MaxKeyGroups - 9)), Count: int32(1 + m.IntN(9))} // Flink has one empty range only
	}
	return KeyGroupRange{Start: int32(m.IntN(MaxKeyGroups)), Count: int32(m.IntN(9))}
}

func (m maker) keyGroups(depth int) *KeyGroupsHandle {
	h := &KeyGroupsHandle{Range: m.keyGroupRange(), Delegate: m.stream(depth)}
	for range h.Range.Count {
		h.Offsets = append(h.Offsets, m.long())
	}
	switch m.IntN(4) {
	case 0:
		h.Savepoint = true
	case 1:
		if !m.current {
			h.Layout = LayoutV1
			break
		}
		fallthrough
	default:
		h.ID = m.text()
	}
	return h
}

func (m maker) namedFile() NamedFile { return NamedFile{LocalPath: m.text(), Handle: m.stream(0)} }

func (m maker) incremental() *IncrementalHandle {
	h := &IncrementalHandle{
		CheckpointID: m.long(), BackendID: m.text(), Range: m.keyGroupRange(), PersistedSize: m.size(), Meta: m.stream(0),
		Shared: several(m, 4, m.namedFile), Private: several(m, 4, m.namedFile), ID: m.text(),
	}
	if m.current {
		h.BackendID, h.PersistedSize = uuid.New().String(), int64(m.Uint32())
	} else if m.chance(25) {
		h.Layout, h.PersistedSize, h.ID = LayoutV1, unknownSize, ""
	}
	return h
}

func (m maker) change() KeyedHandle {
	if m.chance(50) {
		return &ChangelogBytesHandle{
			Range: m.keyGroupRange(), From: int64(m.Uint32()), To: math.MaxInt64, ID: m.text(),
			Changes: several(m, 3, func() StateChange {
				return StateChange{KeyGroup: int32(m.IntN(100) - 1), Data: m.bytes()}
			}),
		}
	}
	h := &ChangelogFileHandle{
		Range: m.keyGroupRange(), Size: m.long(), PersistedSize: m.long(), ID: m.text(), Storage: m.text(),
		Parts: several(m, 3, func() ChangelogPart { return ChangelogPart{Offset: m.long(), Handle: m.stream(0)} }),
	}
	if !m.current && m.chance(25) {
		h.Layout, h.Storage = LayoutV1, FilesystemStorage
	}
	return h
}

func (m maker) keyed(depth int) KeyedHandle {
	switch m.IntN(6) {
	case 0, 1:
		return m.keyGroups(0)
	case 2, 3:
		return m.incremental()
	case 4:
		return m.change()
	}
	if depth > 2 {
		return m.keyGroups(0)
	}
	h := &ChangelogHandle{
		Range: KeyGroupRange{Start: int32(m.IntN(100)), Count: int32(1 + m.IntN(100))}, PersistedSize: m.long(), MaterializationID: m.long(), CheckpointID: m.long(), ID: m.text(),
		Materialized: several(m, 2, func() KeyedHandle { return m.keyed(depth + 1) }), Changes: several(m, 2, m.change),
	}
	if !m.current && m.chance(25) {
		h.Layout, h.CheckpointID = LayoutV1, h.MaterializationID
	}
	return h
}

func (m maker) operatorHandle() *OperatorHandle {
	if m.chance(60) {
		return nil
	}
	h := &OperatorHandle{
		Delegate: m.stream(0),
		States: several(m, 4, func() NamedState {
			return NamedState{Name: m.text(), Mode: Mode(m.IntN(3)), Offsets: m.longs(4)}
		}),
	}
	if m.current {
		slices.SortFunc(h.States, func(a, b NamedState) int { return strings.Compare(a.Name, b.Name) })
		h.States = slices.CompactFunc(h.States, func(a, b NamedState) bool { return a.Name == b.Name })
		h = NewOperatorHandle(h.States, h.Delegate)
	}
	if m.chance(30) {
		h.Merging = &Merging{TaskOwnedDir: "hdfs://nn/to", SharedDir: "/" + m.fileName(), Empty: m.chance(50)}
		h.Delegate = m.segment()
		if m.chance(50) {
			h.Delegate = EmptySegment{}
		}
	}
	return h
}

func (m maker) channel() Channel {
	return Channel{Group: int32(m.Uint32()), Index: int32(m.Uint32()), Size: m.long(), Offsets: m.longs(3)}
}

func (m maker) channelHandle() ChannelHandle {
	if m.chance(50) {
		return NewChannelHandle(int32(m.Uint32()), m.channel(), m.stream(0))
	}
	return NewMergedChannelHandle(int32(m.Uint32()), several(m, 3, m.channel), m.stream(0))
}

func (m maker) state() *SubtaskState {
	s := &SubtaskState{ManagedOperator: m.operatorHandle(), RawOperator: m.operatorHandle()}
	if m.chance(40) {
		s.ManagedKeyed = m.keyed(0)
	}
	if m.chance(20) {
		s.RawKeyed = m.keyed(0)
	}
	if m.chance(30) {
		s.InputChannels = several(m, 3, m.channelHandle)
		s.ResultSubpartitions = several(m, 3, m.channelHandle)
	}
	return s
}

func (m maker) operator() OperatorState {
	o := OperatorState{Name: m.text(), UID: m.text(), Parallelism: 1 + m.IntN(20)}
	o.MaxParallelism = o.Parallelism + m.IntN(MaxKeyGroups-o.Parallelism+1)
	for i := range o.ID {
		o.ID[i] = byte(m.Uint32())
	}
	if m.chance(15) {
		o.FullyFinished = true
		return o
	}
	if m.chance(30) {
		o.Coordinator = m.inline()
	}
	for i := range o.Parallelism {
		switch {
		case m.chance(20): // left out
		case m.chance(20):
			o.Subtasks = append(o.Subtasks, Subtask{Index: i})
		default:
			o.Subtasks = append(o.Subtasks, Subtask{Index: i, State: m.state()})
		}
	}
	return o
}

func (m maker) properties() *Properties {
	if m.chance(20) {
		return &Properties{Null: true}
	}
	p := &Properties{
		Forced: m.chance(50), Unclaimed: m.chance(50), DiscardSubsumed: m.chance(50), DiscardFinished: m.chance(50),
		DiscardCancelled: m.chance(50), DiscardFailed: m.chance(50), DiscardSuspended: m.chance(50),
	}
	switch m.IntN(3) {
	case 0:
		p.Type = SnapshotType{Class: CheckpointClass, Name: "Full Checkpoint", Sharing: pick(m, "", "FORWARD")}
	case 1:
		p.Type = SnapshotType{Class: SavepointClass, Name: pick(m, "", "é"), Format: "NATIVE", Action: pick(m, "", "SUSPEND")}
	}
	return p
}

func (m maker) footer() *Footer {
	return &Footer{
		Created: time.UnixMilli(int64(m.Uint32()) * 1000).UTC(), Kind: Kind(m.IntN(3)), Durability: core.Durability(m.IntN(4)),
	}
}

func (m maker) checkpoint() *Checkpoint {
	return &Checkpoint{
		ID:         pick(m, 0, 1, math.MaxInt64, int64(m.Uint32())),
		Operators:  several(m, 4, m.operator),
		Properties: m.properties(),
		MasterStates: several(m, 2, func() MasterState {
			return MasterState{Name: m.text(), Version: int32(m.Uint32()), Data: m.bytes()}
		}),
	}
}
