package core

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemporaryNamesOfMetadataAreKnownAsGarbage(t *testing.T) {
	a, err := NewMetadataTempName()
	require.NoError(t, err)
	b, err := NewMetadataTempName()
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	require.True(t, isMetadataTempName(a))
}
