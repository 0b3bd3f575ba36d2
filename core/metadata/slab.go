package metadata

import (
	"reflect"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// slabBytes is the size of a full chunk of a slab. It bounds both what one handle that outlives its checkpoint keeps in
// memory and what a hostile file can make the parser allocate in vain.
const slabBytes = 32 << 10

// slab hands out values and slices of T from chunks, so that a checkpoint with a million handles is some thousand
// allocations.
type slab[T any] struct {
	free []T
	next int // length of the next chunk

	// For parsers that start over, or use memory again for each subtask: all chunks, of which the first at are given out.
	keep   bool
	chunks [][]T
	at     int
}

// one returns a pointer to a zero T.
func (s *slab[T]) one() *T { return &s.take(1)[0] }

// take returns a slice of n zero values with capacity n; nil for n = 0.
func (s *slab[T]) take(n int) []T {
	if n == 0 {
		return nil
	}
	if n > len(s.free) {
		full := max(1, slabBytes/int(reflect.TypeFor[T]().Size()))
		if n > full/4 {
			return s.chunk(n)
		}
		s.next = min(max(2*s.next, 8, n), full)
		s.free = s.chunk(s.next)
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

// chunk allocates, or takes what the attempt before had at the same place: both attempts ask for the same until they
// differ, and from there on a chunk that is too small is left to the collector.
func (s *slab[T]) chunk(n int) []T {
	if !s.keep {
		return make([]T, n)
	}
	if s.at == len(s.chunks) {
		s.chunks = append(s.chunks, nil)
	}
	c := s.chunks[s.at]
	if len(c) < n {
		c = make([]T, n)
		s.chunks[s.at] = c
	} else {
		c = c[:n]
		clear(c)
	}
	s.at++
	return c
}

// restartable is a slab of any type.
type restartable interface {
	keepChunks()
	restart()
}

// slabs has one slab for everything that a parser allocates, but texts.
type slabs struct {
	blobs        slab[byte]
	longs        slab[int64]
	sums         slab[uint32]
	masters      slab[MasterState]
	operatorList slab[OperatorState]
	subtasks     slab[Subtask]
	states       slab[SubtaskState]
	operators    slab[OperatorHandle]
	named        slab[NamedState]
	mergings     slab[Merging]
	keyed        slab[KeyedHandle]
	keyGroups    slab[KeyGroupsHandle]
	incrementals slab[IncrementalHandle]
	files        slab[NamedFile]
	changelogs   slab[ChangelogHandle]
	changeBytes  slab[ChangelogBytesHandle]
	changes      slab[StateChange]
	changeFiles  slab[ChangelogFileHandle]
	changeParts  slab[ChangelogPart]
	channels     slab[ChannelHandle]
	channelParts slab[Channel]
	inline       slab[core.BytesHandle]
	absolute     slab[core.FileHandle]
	relative     slab[core.RelativeFileHandle]
	segments     slab[SegmentHandle]
}

func (s *slabs) each(do func(restartable)) {
	for _, one := range [...]restartable{
		&s.blobs, &s.longs, &s.sums, &s.masters, &s.operatorList, &s.subtasks, &s.states, &s.operators, &s.named, &s.mergings, &s.keyed, &s.keyGroups,
		&s.incrementals, &s.files, &s.changelogs, &s.changeBytes, &s.changes, &s.changeFiles, &s.changeParts, &s.channels,
		&s.channelParts, &s.inline, &s.absolute, &s.relative, &s.segments,
	} {
		do(one)
	}
}

func (s *slab[T]) keepChunks() { s.keep = true }

// restart takes back everything that was handed out.
func (s *slab[T]) restart() {
	s.free, s.next, s.at = nil, 0, 0
}

// textSlab makes strings that share their memory: the strings of one chunk keep each other alive, no more than slabBytes.
type textSlab struct {
	chunk *strings.Builder
	next  int
}

// take returns b as a string.
func (s *textSlab) take(b []byte) string {
	if len(b) > slabBytes/4 {
		return string(b)
	}
	if s.chunk == nil || s.chunk.Cap()-s.chunk.Len() < len(b) {
		s.next = min(max(2*s.next, 256, len(b)), slabBytes)
		s.chunk = new(strings.Builder)
		s.chunk.Grow(s.next)
	}
	s.chunk.Write(b)
	text := s.chunk.String()
	return text[len(text)-len(b):]
}
