package codec_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

func TestXXH32(t *testing.T) {
	require.Equal(t, uint32(0x02cc5d05), codec.XXH32(nil, 0))
	require.Equal(t, uint32(0x32d153ff), codec.XXH32([]byte("abc"), 0))
	require.Equal(t, uint32(0xd84d80db), codec.XXH32([]byte{0xff, 0xff, 0xff, 0xff}, 0x9747b28c))
	require.Equal(t, uint32(0xe2293b2f), codec.XXH32([]byte("Nobody inspects the spammish repetition"), 0))
}

func randomChanges(t *testing.T, version, n int) []codec.Change {
	r := seeded(t)
	ops := []codec.ChangeOp{codec.ChangePut, codec.ChangeDelete, codec.ChangeMerge, codec.ChangeDeleteRange}
	if version%2 == 1 {
		ops = ops[:2]
	}
	var changes []codec.Change
	for range n {
		change := codec.Change{Op: ops[r.IntN(len(ops))], Key: []byte(noise(r, r.IntN(40)))}
		switch change.Op {
		case codec.ChangePut, codec.ChangeMerge:
			change.Value = []byte(noise(r, r.IntN(3000)))
		case codec.ChangeDeleteRange:
			change.End = []byte(noise(r, r.IntN(40)))
		}
		changes = append(changes, change)
	}
	return changes
}

func writeChangelog(t *testing.T, version int, lineage []codec.LineageEntry, opts codec.WriterOptions, changes []codec.Change) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := codec.NewChangelogWriter(&b, version, lineage, opts)
	require.NoError(t, err)
	for _, change := range changes {
		require.NoError(t, w.Write(change))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestEveryChangelogReadsBackAsItWasWritten(t *testing.T) {
	lineage := []codec.LineageEntry{{Version: 3, CheckpointUniqueID: "a"}, {Version: 4, CheckpointUniqueID: "b"}}
	for version := 1; version <= 4; version++ {
		for _, c := range allCompressions {
			for _, sums := range []bool{false, true} {
				for _, noFooter := range []bool{false, true} {
					changes := randomChanges(t, version, 100)
					var l []codec.LineageEntry
					if version >= 3 {
						l = lineage
					}
					b := writeChangelog(t, version, l, codec.WriterOptions{Compression: c, RowChecksum: sums, NoFooter: noFooter}, changes)
					requireChangelog(t, b, codec.ReaderOptions{RowChecksum: sums}, version, l, changes)
				}
			}
		}
	}
}

func TestChangelogDamageIsFound(t *testing.T) {
	drain := func(b []byte) error {
		r, err := codec.NewChangelogReader(bytes.NewReader(b), int64(len(b)), codec.ReaderOptions{})
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		for {
			if _, err := r.Next(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	for version := 1; version <= 4; version++ {
		b := writeChangelog(t, version, nil, codec.WriterOptions{Compression: codec.None, NoFooter: true}, randomChanges(t, version, 5))
		require.NoError(t, drain(b))
		for n := range len(b) {
			require.ErrorIs(t, drain(b[:n]), core.ErrCorrupt, "version %d cut at %d", version, n)
		}
		require.ErrorIs(t, drain(append(slices.Clone(b), 0)), core.ErrCorrupt)
		b = writeChangelog(t, version, nil, codec.WriterOptions{}, randomChanges(t, version, 5))
		for i := range len(b) * 8 {
			bad := slices.Clone(b)
			bad[i/8] ^= 1 << (i % 8)
			require.Error(t, drain(bad), "version %d bit %d", version, i)
		}
	}
	require.ErrorIs(t, drain([]byte("\x00\x02v5")), core.ErrUnsupportedVersion)
	require.ErrorIs(t, drain([]byte("\x00\x02v2\x30")), core.ErrCorrupt, "record type")
	require.ErrorIs(t, drain([]byte("\x00\x02v3\x00\x02[[\xff\xff\xff\xff")), core.ErrCorrupt, "lineage")
	require.ErrorIs(t, drain([]byte("\x00\x02v2\x10\x00\x00\x00\x01k\x00\x00\x00\x00\x00")), core.ErrCorrupt, "a delete with a value")
}

func TestChangelogWriterRefusesWhatTheVersionCannotHold(t *testing.T) {
	lineage := []codec.LineageEntry{{Version: 1, CheckpointUniqueID: "u"}}
	for version, want := range map[int]error{0: core.ErrUnsupportedVersion, 5: core.ErrUnsupportedVersion, 1: fs.ErrInvalid, 2: fs.ErrInvalid} {
		_, err := codec.NewChangelogWriter(io.Discard, version, lineage, codec.WriterOptions{})
		require.ErrorIs(t, err, want)
	}
	for _, id := range []string{"ü", "\x00", strings.Repeat("x", 70_000)} {
		_, err := codec.NewChangelogWriter(io.Discard, 3, []codec.LineageEntry{{Version: 1, CheckpointUniqueID: id}}, codec.WriterOptions{})
		if id != "\x00" { // JSON escapes it
			require.ErrorIs(t, err, fs.ErrInvalid)
		}
	}
	w, err := codec.NewChangelogWriter(io.Discard, 3, lineage, codec.WriterOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, w.Write(codec.Change{Op: codec.ChangeMerge}), fs.ErrInvalid)
	require.ErrorIs(t, w.Write(codec.Change{Op: codec.ChangeDeleteRange}), fs.ErrInvalid)
	require.ErrorIs(t, w.Write(codec.Change{Op: 7}), fs.ErrInvalid)
	require.NoError(t, w.Write(codec.Change{Op: codec.ChangePut}))
	w.Abort()
	require.ErrorIs(t, w.Close(), fs.ErrClosed)
}
