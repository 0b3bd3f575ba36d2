package metadata

import (
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

var tableParallelisms = []int{1, 7, 128, 4096, 32768}

// keyGroupTable returns the rows of one kind of the table that Flink's own classes made.
func keyGroupTable(t *testing.T, kind string) [][]string {
	text, err := os.ReadFile(filepath.Join("testdata", "keygroups.tsv"))
	require.NoError(t, err)
	var rows [][]string
	for line := range strings.SplitSeq(string(text), "\n") {
		if fields := strings.Split(line, "\t"); fields[0] == kind {
			rows = append(rows, fields[1:])
		}
	}
	require.NotEmpty(t, rows)
	return rows
}

func number(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func TestKeyGroupsOfHashesAreThoseOfFlink(t *testing.T) {
	for _, row := range keyGroupTable(t, "hash") {
		hash := int32(number(t, row[0]))
		require.Equal(t, number(t, row[1]), int(murmur(uint32(hash))), "hash %d", hash)
		for i, most := range tableParallelisms {
			require.Equal(t, number(t, row[2+i]), KeyGroupOfHash(hash, most))
		}
	}
}

func TestKeyGroupsOfStringsAreThoseOfFlink(t *testing.T) {
	for _, row := range keyGroupTable(t, "string") {
		raw, err := hex.DecodeString(row[0])
		require.NoError(t, err)
		var encoded []byte
		for i := 0; i < len(raw); i += 2 {
			encoded = appendUnit(encoded, rune(raw[i])<<8|rune(raw[i+1]))
		}
		key, ok := appendDecodedUTF8(nil, encoded)
		require.True(t, ok)
		require.Equal(t, number(t, row[1]), int(javaStringHash(string(key))), "%q", key)
		for i, most := range tableParallelisms {
			require.Equal(t, number(t, row[2+i]), KeyGroupOfString(string(key), most))
		}
	}
}

func TestKeyGroupsOfBytesAreThoseOfFlink(t *testing.T) {
	for _, row := range keyGroupTable(t, "bytes") {
		key, err := hex.DecodeString(row[0])
		require.NoError(t, err)
		for i, most := range tableParallelisms {
			require.Equal(t, number(t, row[2+i]), KeyGroupOfBytes(key, most))
		}
	}
}

func TestKeyGroupRangesAreThoseOfFlink(t *testing.T) {
	for _, row := range keyGroupTable(t, "range") {
		r, err := KeyGroupsOfSubtask(number(t, row[2]), number(t, row[1]), number(t, row[0]))
		require.NoError(t, err)
		first, last := number(t, row[3]), number(t, row[4])
		require.Equal(t, KeyGroupRange{Start: int32(first), Count: int32(last - first + 1)}, r)
	}
	for _, row := range keyGroupTable(t, "owner") {
		require.Equal(t, number(t, row[3]), SubtaskOfKeyGroup(number(t, row[2]), number(t, row[1]), number(t, row[0])))
	}
}

func TestSubtasksShareOutAllKeyGroups(t *testing.T) {
	for _, most := range []int{1, 2, 7, 128, 1000, MaxKeyGroups} {
		for _, parallelism := range []int{1, 2, 3, 7, 100, 127, 128, 999, MaxKeyGroups} {
			if parallelism > most {
				continue
			}
			next := 0
			for i := range parallelism {
				r, err := KeyGroupsOfSubtask(i, parallelism, most)
				require.NoError(t, err)
				require.Equal(t, next, int(r.Start))
				require.Positive(t, r.Count)
				next = r.End()
				require.Equal(t, i, SubtaskOfKeyGroup(int(r.Start), parallelism, most))
				require.Equal(t, i, SubtaskOfKeyGroup(r.End()-1, parallelism, most))
			}
			require.Equal(t, most, next)
		}
	}
}

func TestKeyGroupRangesOutsideOfFlinksLimitsAreRefused(t *testing.T) {
	for _, c := range [][3]int{{0, 1, 0}, {0, 1, MaxKeyGroups + 1}, {0, 0, 1}, {0, 3, 2}, {-1, 1, 1}, {1, 1, 1}, {0, -1, 4}} {
		_, err := KeyGroupsOfSubtask(c[0], c[1], c[2])
		require.ErrorIs(t, err, fs.ErrInvalid, "%v", c)
	}
}

func TestKeyGroupRange(t *testing.T) {
	r := KeyGroupRange{Start: 3, Count: 4}
	require.Equal(t, "[3, 6]", r.String())
	require.Equal(t, "[]", KeyGroupRange{Start: 3}.String())
	for group, want := range map[int]bool{2: false, 3: true, 6: true, 7: false} {
		require.Equal(t, want, r.Contains(group))
	}
	require.Equal(t, KeyGroupRange{Start: 5, Count: 2}, r.Intersect(KeyGroupRange{Start: 5, Count: 10}))
	require.Equal(t, KeyGroupRange{Start: 3, Count: 1}, r.Intersect(KeyGroupRange{Count: 4}))
	require.Equal(t, KeyGroupRange{}, r.Intersect(KeyGroupRange{Start: 7, Count: 1}))
	require.Equal(t, KeyGroupRange{}, r.Intersect(KeyGroupRange{}))
}

func TestStringHashIsThatOfUTF16(t *testing.T) {
	for _, s := range []string{"", "hello", "é文字", "😀", "a😀b"} {
		var want int32
		for _, unit := range utf16.Encode([]rune(s)) {
			want = 31*want + int32(unit)
		}
		require.Equal(t, want, javaStringHash(s))
	}
}
