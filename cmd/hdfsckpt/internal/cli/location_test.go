package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQualify(t *testing.T) {
	for _, tt := range []struct{ arg, fs, want string }{
		{"/a/b", "file://", "file:/a/b"},
		{"/a/b/", "file:///", "file:/a/b"},
		{"b", "file://", "file:/cwd/b"},
		{".", "file://", "file:/cwd"},
		{"../b", "file://", "file:/b"},
		{"./a:b", "file://", "file:/cwd/a:b"},
		{"/a:b", "file://", "file:/a:b"},
		{"/a//b/../c", "hdfs://ns1", "hdfs://ns1/a/c"},
		{"/", "hdfs://ns1/", "hdfs://ns1/"},
		{"/a", "hdfs://", "hdfs:/a"},
		{"hdfs://ns2/a/", "file://", "hdfs://ns2/a"},
		{"file:///a/b", "hdfs://ns1", "file:/a/b"},
		{"file:/a/b", "hdfs://ns1", "file:/a/b"},
		{"hdfs://host:8020/a", "file://", "hdfs://host:8020/a"},
		{"b", "hdfs://ns1", ""},
		{"hdfs:a", "file://", ""},
		{"://a", "file://", ""},
	} {
		got, err := qualify(tt.arg, tt.fs, "/cwd")
		if tt.want == "" {
			require.Error(t, err, tt.arg)
			continue
		}
		require.NoError(t, err, tt.arg)
		require.Equal(t, tt.want, got)
	}
}
