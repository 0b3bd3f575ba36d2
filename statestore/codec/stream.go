package codec

import (
	"bufio"
	"bytes"
	"hash/crc32"
)

// stream is the codec's stream of a file that is being written. It sums it up by the chunks of the footer.
type stream struct {
	w      *bufio.Writer
	bytes  int64
	sums   []uint32
	sum    uint32  // of the chunk that is not full
	blocks []int64 // offsets
}

// emit writes the blocks of a run.
func (s *stream) emit(r *run) error {
	at := s.bytes
	for _, n := range r.lengths {
		s.blocks = append(s.blocks, at)
		at += int64(n)
	}
	if err := s.write(r.framed); err != nil {
		return err
	}
	return s.write(r.stored)
}

func (s *stream) write(p []byte) error {
	if _, err := s.w.Write(p); err != nil {
		return err
	}
	for len(p) > 0 {
		n := min(int64(len(p)), footerChunk-s.bytes%footerChunk)
		s.sum = crc32.Update(s.sum, castagnoli, p[:n])
		p = p[n:]
		s.bytes += n
		if s.bytes%footerChunk == 0 {
			s.sums = append(s.sums, s.sum)
			s.sum = 0
		}
	}
	return nil
}

// chunkSums returns the sums of all chunks of a stream that has ended.
func (s *stream) chunkSums() []uint32 {
	if s.bytes%footerChunk == 0 {
		return s.sums
	}
	return append(s.sums, s.sum)
}

const (
	indexInterval  = 256 << 10 // bytes of content between entries of the index, at first
	indexMaxKey    = 1 << 10   // a record with a longer key is not indexed
	indexMaxLength = 1024      // then every other entry goes
)

// indexer chooses the records that a snapshot's index names.
type indexer struct {
	places    []place
	interval  int64
	last      int64 // place in the content of the last entry
	blockSize int64
}

// place is where a record begins in the content.
type place struct {
	key []byte
	at  int64
}

// note is told of every record before it is written.
func (x *indexer) note(key []byte, at int64) {
	if at-x.last < x.interval || len(key) > indexMaxKey {
		return
	}
	x.last = at
	x.places = append(x.places, place{bytes.Clone(key), at})
	if len(x.places) > indexMaxLength {
		kept := x.places[:0]
		for i := 0; i < len(x.places); i += 2 {
			kept = append(kept, x.places[i])
		}
		clear(x.places[len(kept):])
		x.places = kept
		x.interval *= 2
	}
}

// entries returns the index of a file whose blocks have these offsets.
func (x *indexer) entries(blocks []int64) []IndexEntry {
	entries := make([]IndexEntry, len(x.places))
	for i, p := range x.places {
		entries[i] = IndexEntry{Key: p.key, Offset: blocks[p.at/x.blockSize], Skip: int(p.at % x.blockSize)}
	}
	return entries
}
