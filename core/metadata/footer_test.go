package metadata

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// noted is a small checkpoint with everything that a footer can hold.
func noted() *Checkpoint {
	shared := &core.Checksums{ChunkSize: 4, Sums: []uint32{1, 2, 3}}
	return &Checkpoint{ID: 5, Operators: []OperatorState{
		{
			Name: "source", Parallelism: 2, MaxParallelism: 128,
			Subtasks: []Subtask{
				{Index: 0, State: &SubtaskState{ManagedOperator: &OperatorHandle{
					Delegate: &core.RelativeFileHandle{Name: "a", Size: 9, Checksums: shared},
				}}},
				{Index: 1, State: &SubtaskState{RawKeyed: &ChangelogFileHandle{Parts: []ChangelogPart{
					{Handle: &core.FileHandle{Path: "/b", Size: 10}},
					{Handle: &core.FileHandle{Path: "/c", Size: 11, Checksums: shared}},
				}}}},
			},
		},
		{Parallelism: 1, MaxParallelism: 1},
		{UID: "sink", Parallelism: 1, MaxParallelism: 1, Subtasks: []Subtask{
			{State: &SubtaskState{ManagedKeyed: &KeyGroupsHandle{
				Delegate: &SegmentHandle{Path: "/d", Offset: 7, Size: -1, Checksums: &core.Checksums{ChunkSize: 1}},
			}}},
		}},
	}}
}

var notedFooter = Footer{Created: time.UnixMilli(1_700_000_000_123).UTC(), Kind: KindSavepoint, Durability: core.Synced}

func writeNoted(t *testing.T, version int) (data []byte, body int) {
	t.Helper()
	footer := notedFooter
	data, err := Append(nil, noted(), WriteOptions{Version: version, Footer: &footer})
	require.NoError(t, err)
	bare, err := Append(nil, noted(), WriteOptions{Version: version})
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(data, bare))
	return data, len(bare)
}

// A change of this test is a change of the format: it needs a new version of the footer.
func TestFooterBytes(t *testing.T) {
	data, body := writeNoted(t, 4)
	foot := data[body:]
	sum := func(b []byte) string {
		return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
	}
	want := "89484346" + "0d0a1a0a" + "00000001" + "00000080" + sum(data[:body]) + "0000018bcfe5687b" + "02" + "03" +
		"00000002" + "00000000" + "0006736f75726365" + "0000" + "00000002" + "0000" + "000473696e6b" +
		"00000002" + "00000004" + "00000003" + "000000010000000200000003" + "00000001" + "00000000" +
		"00000003" + "0000000000000000" + "0000000200000000" + "0000000300000001"
	raw, err := hex.DecodeString(want)
	require.NoError(t, err)
	want += sum(raw) + "00000080"
	require.Equal(t, want, hex.EncodeToString(foot))
}

func TestFooterGivesBackWhatWasRecorded(t *testing.T) {
	for version := oldestWritable; version <= newestVersion; version++ {
		data, _ := writeNoted(t, version)
		c, err := Parse(data, "")
		require.NoError(t, err)
		require.Equal(t, &notedFooter, c.Footer)
		want := noted()
		require.Equal(t, want.Operators, c.Operators)
		sums := as[*core.RelativeFileHandle](t, c.Operators[0].Subtasks[0].State.ManagedOperator.Delegate).Checksums
		file := as[*ChangelogFileHandle](t, c.Operators[0].Subtasks[1].State.RawKeyed)
		require.Same(t, sums, as[*core.FileHandle](t, file.Parts[1].Handle).Checksums)
	}
}

func TestFooterCutOffAnywhereIsCorrupt(t *testing.T) {
	for version := oldestWritable; version <= newestVersion; version++ {
		data, body := writeNoted(t, version)
		for n := range data {
			_, err := Parse(data[:n], "")
			if n == body {
				require.NoError(t, err) // a file as Flink writes it
				continue
			}
			require.ErrorIs(t, err, core.ErrCorrupt, "%d of %d bytes", n, len(data))
		}
	}
}

func TestDamageToAFileWithFooterIsNoticed(t *testing.T) {
	data, body := writeNoted(t, 4)
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			_, err := Parse(data, "")
			require.Error(t, err, "bit %d of byte %d, the body has %d", bit, i, body)
			if i < 4 || i >= headerLength { // not the version
				require.ErrorIs(t, err, core.ErrCorrupt)
			}
			data[i] ^= 1 << bit
		}
	}
}

func TestBytesBehindTheEndAreCorrupt(t *testing.T) {
	data, body := writeNoted(t, 6)
	for name, file := range map[string][]byte{
		"behind the body":    append(bytes.Clone(data[:body]), "foreign"...),
		"one byte":           append(bytes.Clone(data[:body]), 0),
		"behind the footer":  append(bytes.Clone(data), 0),
		"before the footer":  append(append(bytes.Clone(data[:body]), 0), data[body:]...),
		"two footers":        append(bytes.Clone(data), data[body:]...),
		"nothing but footer": append(bytes.Clone(data[:headerLength]), data[body:]...),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(file, "")
			require.ErrorIs(t, err, core.ErrCorrupt)
		})
	}
}

// reseal makes both checksums and lengths right again.
func reseal(data []byte, body int) []byte {
	foot := data[body:]
	end := len(foot) - footerTail
	binary.BigEndian.PutUint32(foot[len(footerMagic)+4:], uint32(len(foot)))
	binary.BigEndian.PutUint32(foot[footerHead:], crc32.Checksum(data[:body], castagnoli))
	binary.BigEndian.PutUint32(foot[end:], crc32.Checksum(foot[:end], castagnoli))
	binary.BigEndian.PutUint32(foot[end+4:], uint32(len(foot)))
	return data
}

func TestNewerFooterIsUnsupported(t *testing.T) {
	data, body := writeNoted(t, 4)
	binary.BigEndian.PutUint32(data[body+len(footerMagic):], 2)
	_, err := Parse(reseal(data, body), "")
	require.ErrorIs(t, err, core.ErrUnsupportedVersion)
	require.NotErrorIs(t, err, core.ErrCorrupt)
}

func TestFooterThatDoesNotFitItsBodyIsCorrupt(t *testing.T) {
	// Offsets in the footer of writeNoted at version 4.
	const (
		kindAt       = 28
		durabilityAt = 29
		namesAt      = 30
		firstNameAt  = 34
		secondNameAt = 48
		sumsAt       = 60
		chunkSizeAt  = 64
		refsAt       = 92
		firstRefAt   = 96
	)
	for name, change := range map[string]func(foot []byte){
		"unknown kind":             func(foot []byte) { foot[kindAt] = 3 },
		"unknown durability":       func(foot []byte) { foot[durabilityAt] = 4 },
		"more names":               func(foot []byte) { foot[namesAt+3] = 3 },
		"huge number of names":     func(foot []byte) { foot[namesAt] = 0x7f },
		"names out of order":       func(foot []byte) { foot[firstNameAt+3] = 2 },
		"name of a third operator": func(foot []byte) { foot[secondNameAt+3] = 3 },
		"negative operator":        func(foot []byte) { foot[firstNameAt] = 0x80 },
		"huge number of checksums": func(foot []byte) { foot[sumsAt] = 0x7f },
		"fewer checksums":          func(foot []byte) { foot[sumsAt+3] = 1 },
		"chunks of no bytes":       func(foot []byte) { foot[chunkSizeAt+3] = 0 },
		"negative chunks":          func(foot []byte) { foot[chunkSizeAt] = 0x80 },
		"chunks that do not fit":   func(foot []byte) { foot[chunkSizeAt+3] = 2 },
		"handle that is not there": func(foot []byte) { foot[firstRefAt+2*sizeRef+3] = 9 },
		"handles out of order":     func(foot []byte) { foot[firstRefAt+sizeRef+3] = 3 },
		"one handle twice":         func(foot []byte) { foot[firstRefAt+sizeRef+3] = 0 },
		"sums that are not there":  func(foot []byte) { foot[firstRefAt+7] = 2 },
		"sums of another":          func(foot []byte) { foot[firstRefAt+7] = 1 },
		"fewer references":         func(foot []byte) { foot[refsAt+3] = 2 },
		"more references":          func(foot []byte) { foot[refsAt+3] = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			data, body := writeNoted(t, 4)
			before := bytes.Clone(data)
			change(data[body:])
			require.NotEqual(t, before, data)
			_, err := Parse(reseal(data, body), "")
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.ErrorContains(t, err, ": ")
		})
	}
}

func TestFooterIsForeignToTheDumpOfFlink(t *testing.T) {
	data, body := writeNoted(t, 4)
	c, err := Parse(data, "")
	require.NoError(t, err)
	var dump bytes.Buffer
	require.NoError(t, DumpFlink(&dump, c, data))
	require.Contains(t, dump.String(), `"name": null`)
	require.NotContains(t, dump.String(), "source")
	require.Contains(t, dump.String(), `"trailingBytes": 128,`)
	require.Equal(t, 128, len(data)-body)
}

func TestUnknownKindAndDurabilityCannotBeWritten(t *testing.T) {
	for _, f := range []Footer{{Kind: 3}, {Durability: 4}} {
		_, err := Append(nil, noted(), WriteOptions{Footer: &f})
		requireInvalid(t, err, "footer")
	}
}

func TestNamesOfConstants(t *testing.T) {
	require.Equal(t, "savepoint", KindSavepoint.String())
	require.Equal(t, "checkpoint", KindCheckpoint.String())
	require.Equal(t, "unknown", KindUnknown.String())
	require.Equal(t, "invalid", Kind(9).String())
	require.Equal(t, "invalid", Mode(9).String())
	require.Equal(t, "invalid", Scope(9).String())
	require.Equal(t, "invalid", Layout(9).String())
	require.Equal(t, "flink-1.14", Layout114.String())
}
