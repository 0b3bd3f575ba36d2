package demo

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheLastBytesAreKept(t *testing.T) {
	var l lastBytes
	for _, text := range []string{"first", strings.Repeat("x", maxLastBytes), "last"} {
		n, err := l.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	require.Equal(t, strings.Repeat("x", maxLastBytes-4)+"last", l.String())
	l.reset()
	require.Empty(t, l.String())
}
