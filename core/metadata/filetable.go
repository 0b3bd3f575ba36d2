package metadata

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// digest stands for the path of a file, or for a segment of one. It is the first half of a SHA-256, so that nobody makes two
// that are equal.
type digest [16]byte

// fileFlags are what is known of a file or segment.
type fileFlags uint16

const (
	flagPresent   fileFlags = 1 << iota // the slot is taken
	flagSegment                         // of a segment, not of a file
	flagSize                            // size is that of the file; else it is the end of the last segment that is needed
	flagDirectory                       //
	flagByte                            // the file is one byte longer than its size
	flagWhole                           // all of the file is needed, not only segments
	flagRelative                        // some handle is relative
	flagSums                            // some handle has checksums
	flagBare                            // some handle of a segment has none
	flagShared                          // some handle is one of those that Flink enters into its registry
	flagMarked                          // free for the owner of the table
)

// fileFacts are what all handles together say of a file or segment.
type fileFacts struct {
	size  int64
	owner uint32 // number of the operator that names it first
	flags fileFlags
	kind  FileKind
}

// fileTable holds facts by digest: about 40 bytes for each. It grows piece by piece, so that it is never there twice.
type fileTable struct {
	shards  [256]fileShard
	scratch []byte
}

// fileShard is a hash table with open addressing; a slot without flagPresent is free.
type fileShard struct {
	keys  []digest
	facts []fileFacts
	n     int
}

// ofPath is the digest of a file.
func (t *fileTable) ofPath(path string) digest {
	t.scratch = append(append(t.scratch[:0], 'f'), path...)
	return t.sum()
}

// ofSegment is the digest of a segment.
func (t *fileTable) ofSegment(path string, offset, size int64) digest {
	t.scratch = binary.BigEndian.AppendUint64(append(t.scratch[:0], 's'), uint64(offset))
	t.scratch = append(binary.BigEndian.AppendUint64(t.scratch, uint64(size)), path...)
	return t.sum()
}

func (t *fileTable) sum() digest {
	sum := sha256.Sum256(t.scratch)
	return digest(sum[:len(digest{})])
}

// at returns the facts for a digest, which are new if they have no flags. They are good until the next call.
func (t *fileTable) at(d digest) *fileFacts {
	s := &t.shards[d[0]]
	if 8*(s.n+1) > 7*len(s.keys) {
		s.grow()
	}
	i := s.find(d)
	if s.facts[i].flags == 0 {
		s.keys[i] = d
		s.n++
	}
	return &s.facts[i]
}

// known returns the facts for a digest, nil if there are none.
func (t *fileTable) known(d digest) *fileFacts {
	s := &t.shards[d[0]]
	if s.n == 0 {
		return nil
	}
	if f := &s.facts[s.find(d)]; f.flags != 0 {
		return f
	}
	return nil
}

// find returns the slot of a digest, or the free one in which it belongs.
func (s *fileShard) find(d digest) int {
	// The high half of a product spreads a hash of 32 bits over any number of slots.
	i := int(uint64(binary.LittleEndian.Uint32(d[1:])) * uint64(len(s.keys)) >> 32)
	for s.facts[i].flags != 0 && s.keys[i] != d {
		if i++; i == len(s.keys) {
			i = 0
		}
	}
	return i
}

func (s *fileShard) grow() {
	old := *s
	size := max(8, len(old.keys)+len(old.keys)/4)
	s.keys, s.facts = make([]digest, size), make([]fileFacts, size)
	for i := range old.keys {
		if old.facts[i].flags != 0 {
			slot := s.find(old.keys[i])
			s.keys[slot], s.facts[slot] = old.keys[i], old.facts[i]
		}
	}
}

// each visits all facts.
func (t *fileTable) each(visit func(*fileFacts)) {
	for i := range t.shards {
		facts := t.shards[i].facts
		for k := range facts {
			if facts[k].flags != 0 {
				visit(&facts[k])
			}
		}
	}
}

// addSizes adds without wrapping round.
func addSizes(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
