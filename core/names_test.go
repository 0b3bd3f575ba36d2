package core_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestCheckName(t *testing.T) {
	long := strings.Repeat("x", 255)
	for _, tt := range []struct {
		base, name string
		ok         bool
	}{
		{"/", "/", true},
		{"", "/", true},
		{"/", "/a", true},
		{"", "/a/b", true},
		{"/a", "/a", true},
		{"/a", "/a/b/c", true},
		{"/", "/" + long, true},
		{"/", "/" + long + "/" + long + "/a", true},
		{"/", "/ü/日本/%2e/+/a b/\\", true},
		{"/", "/.hidden/..a/...", true},
		{"/a", "/ab", false},
		{"/a", "/", false},
		{"/a/b", "/a", false},
		{"/a", "/b/a", false},
		{"/", "", false},
		{"/", "a", false},
		{"/", "./a", false},
		{"/", "/a/", false},
		{"/", "//a", false},
		{"/", "/a//b", false},
		{"/", "/a/./b", false},
		{"/", "/a/../b", false},
		{"/", "/..", false},
		{"/a", "/a/../b", false},
		{"/", "/a\x00b", false},
		{"/", "/a:b", false},
		{"/", "hdfs://ns1/a", false},
		{"/", "/" + long + "x", false},
		{"/", "/a/" + long + "x/b", false},
		{"/", "/" + strings.Repeat("ü", 128), false}, // 256 bytes
	} {
		err := core.CheckName("stat", tt.base, tt.name)
		if tt.ok {
			require.NoError(t, err, "%q in %q", tt.name, tt.base)
			continue
		}
		require.ErrorIs(t, err, fs.ErrInvalid, "%q in %q", tt.name, tt.base)
		var pathError *fs.PathError
		require.ErrorAs(t, err, &pathError)
		require.Equal(t, "stat", pathError.Op)
		require.Equal(t, tt.name, pathError.Path)
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		dir, name string
		want      bool
	}{
		{"/", "/", true},
		{"", "/a", true},
		{"/a", "/a", true},
		{"/a", "/a/b", true},
		{"/a", "/ab", false},
		{"/a/b", "/a", false},
		{"/a", "/", false},
	} {
		require.Equal(t, tt.want, core.Within(tt.dir, tt.name), "%q in %q", tt.name, tt.dir)
	}
}

func TestCheckComponent(t *testing.T) {
	for _, component := range []string{"a", "a b", "ü", "..a", "...", "%", strings.Repeat("x", 255)} {
		require.NoError(t, core.CheckComponent(component), "%q", component)
	}
	for _, component := range []string{
		"", ".", "..", "a/b", "/", `a\b`, "a:b", "a\x00", "a\nb", "\x7f", strings.Repeat("x", 256), "../a",
	} {
		require.ErrorIs(t, core.CheckComponent(component), fs.ErrInvalid, "%q", component)
	}
}

// FuzzCheckName looks for an accepted name that is not clean, leads out of the base, or that HDFS or a local disk refuses.
func FuzzCheckName(f *testing.F) {
	for _, seed := range [][2]string{
		{"/", "/a"}, {"/a", "/ab"}, {"/a", "/a/../b"}, {"", "//"}, {"/a", "/a/"}, {"/", "/a:b"}, {"/", "/\x00"}, {"/", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, base, name string) {
		base = path.Clean("/" + base)
		err := core.CheckName("stat", base, name)
		if err != nil {
			require.ErrorIs(t, err, fs.ErrInvalid)
			return
		}
		require.Equal(t, path.Join("/", name), name)
		require.True(t, core.Within(base, name))
		require.True(t, name == base || strings.HasPrefix(name, strings.TrimSuffix(base, "/")+"/"))
		require.False(t, strings.ContainsAny(name, ":\x00"))
		for component := range strings.SplitSeq(name, "/") {
			require.LessOrEqual(t, len(component), 255)
			require.NotEqual(t, "..", component)
		}
	})
}
