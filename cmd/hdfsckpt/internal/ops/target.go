package ops

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
)

// targetKey tells objects and segments apart that a checkpoint could judge differently.
type targetKey [16]byte

func newTargetKey(o core.Object) targetKey {
	b := append([]byte(o.Path), 0)
	b = binary.BigEndian.AppendUint64(b, uint64(o.Size))
	b = binary.BigEndian.AppendUint64(b, uint64(o.AtLeast))
	for _, flag := range [...]bool{o.FlagByte, o.Directory} {
		if flag {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	b = appendSums(b, o.Checksums)
	for _, s := range o.Segments {
		b = binary.BigEndian.AppendUint64(b, uint64(s.Offset))
		b = binary.BigEndian.AppendUint64(b, uint64(s.Size))
		b = appendSums(b, s.Checksums)
	}
	sum := sha256.Sum256(b)
	return targetKey(sum[:len(targetKey{})])
}

func appendSums(b []byte, c *core.Checksums) []byte {
	if c == nil {
		return append(b, 0)
	}
	b = binary.BigEndian.AppendUint64(append(b, 1), uint64(c.ChunkSize))
	for _, sum := range c.Sums {
		b = binary.BigEndian.AppendUint32(b, sum)
	}
	return b
}

// soundness is the outcome of an object with which nothing is wrong, in few bytes: the bytes that were read, above the flags.
type soundness uint64

const (
	soundChecked soundness = 1 << iota
	soundWithoutChecksum
	soundMissingDirectory
	soundCompared
	soundNotCompared
	soundBits = iota
)

func newSoundness(o report.Outcome) soundness {
	s := soundness(o.ReadBytes) << soundBits
	for flag, set := range map[soundness]bool{
		soundChecked: o.Checked, soundWithoutChecksum: o.WithoutChecksum, soundMissingDirectory: o.MissingDirectory,
		soundCompared: o.Compared, soundNotCompared: o.NotCompared,
	} {
		if set {
			s |= flag
		}
	}
	return s
}

func (s soundness) outcome() report.Outcome {
	return report.Outcome{
		ReadBytes: int64(s >> soundBits), Checked: s&soundChecked != 0, WithoutChecksum: s&soundWithoutChecksum != 0,
		MissingDirectory: s&soundMissingDirectory != 0, Compared: s&soundCompared != 0, NotCompared: s&soundNotCompared != 0,
	}
}
