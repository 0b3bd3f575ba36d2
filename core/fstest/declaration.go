package fstest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func declarationRules() []rule {
	return []rule{
		{"URI is a scheme and an authority and stays the same", func(t testing.TB, s *subject) {
			scheme, authority, found := strings.Cut(s.FS.URI(), "://")
			require.True(t, found, "no :// in %q", s.FS.URI())
			require.NotEmpty(t, scheme)
			require.NotContains(t, authority, "/")
			require.Equal(t, s.FS.URI(), s.FS.URI())
		}},
		{"Durabilities are declared weakest first", func(t testing.TB, s *subject) {
			require.NotEmpty(t, s.caps.Durabilities, "a file system without durability can create no file")
			require.True(t, slices.IsSorted(s.caps.Durabilities), "%v", s.caps.Durabilities)
			require.Len(t, slices.Compact(slices.Clone(s.caps.Durabilities)), len(s.caps.Durabilities))
			for _, d := range s.caps.Durabilities {
				require.Contains(t, []core.Durability{core.Unsynced, core.Replicated, core.Synced}, d)
			}
		}},
		{"Capabilities do not change", func(t testing.TB, s *subject) {
			before := s.FS.Capabilities()
			clobbered := s.FS.Capabilities()
			if len(clobbered.Durabilities) > 0 {
				clobbered.Durabilities[0] = 99
			}
			s.write(t, s.path("file"), []byte("x"))
			after := s.FS.Capabilities()
			require.NotContains(t, after.Durabilities, core.Durability(99), "callers share the declared slice")
			before.Durabilities, after.Durabilities = nil, nil
			require.Equal(t, before, after)
		}},
		{"Two clients of one storage declare the same", func(t testing.TB, s *subject) {
			second := s.Second(t)
			require.Equal(t, s.caps, second.Capabilities())
			require.Equal(t, s.FS.URI(), second.URI())
		}},
	}
}
