package testenv

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHadoopsClientReadsAndMeasuresOnTheCluster(t *testing.T) {
	cluster := Require(t, Options{})
	dir := cluster.TempDir(t)
	hadoop := RequireHadoop(t, EngineSettings{})
	require.Equal(t, strings.TrimSuffix(cluster.URL(), "/"), string(hadoop.Call(t, "connect", cluster.ConfDir())))
	hadoop.Call(t, "put", dir+"/file", "content", "2")
	require.Equal(t, "content", string(hadoop.Call(t, "cat", dir+"/file")))
	require.Contains(t, string(hadoop.Call(t, "write", dir+"/large", "4", "4096", "2", "true")), `"wall"`)
	require.Contains(t, string(hadoop.Call(t, "read", dir+"/large", "4", "4096")), `"cpu"`)
	require.Contains(t, string(hadoop.Call(t, "commit", dir+"/commits", "10", "2", "1", "false")), `"p99"`)
	require.Contains(t, string(hadoop.Call(t, "stat", dir+"/file", "10")), `"p50"`)
	require.NotEqual(t, "null", string(hadoop.Call(t, "checksum", dir+"/file")))
}
