package proc

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStatSurvivesAnyName(t *testing.T) {
	const rest = " 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 8192 1 18446744073709551615\n"
	for _, name := range []string{"sleep", "a b", "a) R 1 (b", ")"} {
		got, err := parseStat([]byte("42 (" + name + ") S" + rest))
		require.NoError(t, err, name)
		require.Equal(t, "4711", got, name)
	}
	_, err := parseStat([]byte("42 (sleep) Z" + rest))
	require.ErrorIs(t, err, fs.ErrNotExist, "a zombie has ended")
	for _, bad := range []string{"", "42 sleep S", "42 (sleep) S 1 2 3"} {
		_, err := parseStat([]byte(bad))
		require.Error(t, err, bad)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 8192 1\n"))
	f.Add([]byte("42 (sleep) Z"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, b []byte) {
		started, err := parseStat(b)
		if (err == nil) == (started == "") {
			t.Errorf("%q, %v", started, err)
		}
	})
}
