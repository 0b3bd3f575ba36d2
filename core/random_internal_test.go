package core

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestRandomUUIDIsOfVersion4AndFresh(t *testing.T) {
	seen := map[uuid.UUID]bool{}
	for range 1000 {
		id, err := randomUUID()
		require.NoError(t, err)
		require.Equal(t, uuid.Version(4), id.Version())
		require.Equal(t, uuid.RFC4122, id.Variant())
		require.True(t, IsStateFileName(id.String()))
		seen[id] = true
	}
	require.Len(t, seen, 1000)
}

func TestInlineNameIsThePathOfAFileOfThatID(t *testing.T) {
	for _, dir := range []string{"mem:/a", "hdfs://ns1/" + strings.Repeat("x", 300)} {
		id, err := randomUUID()
		require.NoError(t, err)
		require.Equal(t, dir+"/"+id.String(), inlineName(dir, id))
	}
}
