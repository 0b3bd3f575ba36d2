package core

import (
	"fmt"
	"hash/crc32"
)

// ChecksumChunk is the size in bytes of the chunks over which the checksums of state files are taken.
const ChecksumChunk = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C returns the Castagnoli sum of p, the one checksum of this module.
func CRC32C(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

// Validate reports whether the checksums fit a file of size bytes; the error is ErrCorrupt.
func (c *Checksums) Validate(size int64) error {
	if c == nil {
		return nil
	}
	if c.ChunkSize <= 0 || size < 0 {
		return fmt.Errorf("%w: checksums over chunks of %d bytes for a file of %d bytes", ErrCorrupt, c.ChunkSize, size)
	}
	chunks := size / int64(c.ChunkSize)
	if size%int64(c.ChunkSize) != 0 {
		chunks++
	}
	if int64(len(c.Sums)) != chunks {
		return fmt.Errorf("%w: %d checksums over chunks of %d bytes for a file of %d bytes", ErrCorrupt, len(c.Sums), c.ChunkSize, size)
	}
	return nil
}

// chunkSummer takes the checksums of a stream as it passes.
type chunkSummer struct {
	sums    []uint32
	current uint32
	filled  int
}

func (s *chunkSummer) add(p []byte) {
	for len(p) > 0 {
		n := min(len(p), ChecksumChunk-s.filled)
		s.current = crc32.Update(s.current, castagnoli, p[:n])
		s.filled += n
		p = p[n:]
		if s.filled == ChecksumChunk {
			s.closeChunk()
		}
	}
}

func (s *chunkSummer) closeChunk() {
	s.sums = append(s.sums, s.current)
	s.current, s.filled = 0, 0
}

// finish returns the checksums of everything added.
func (s *chunkSummer) finish() *Checksums {
	if s.filled > 0 {
		s.closeChunk()
	}
	return &Checksums{ChunkSize: ChecksumChunk, Sums: s.sums}
}
