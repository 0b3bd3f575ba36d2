package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The versions differ in the shapes of the calls that the program makes.
var sparkVersions = []string{"3.5.7", "4.0.1", "4.1.3", SparkVersion}

func TestTheStoresOfEverySparkCommitLoadAndMaintain(t *testing.T) {
	for _, version := range sparkVersions {
		t.Run(version, func(t *testing.T) {
			spark := RequireSpark(t, version, EngineSettings{})
			root := "file://" + t.TempDir()
			spark.Call(t, "open", "a", root, "0", "0", "default", "stateStore.compression.codec=zstd", "stateStore.minDeltasForSnapshot=0")
			require.Equal(t, "1", string(spark.Call(t, "apply", "a", "0", "put 0000000000000001 0000000000000011\nput 0000000000000002 0000000000000012")))
			require.Equal(t, "2", string(spark.Call(t, "apply", "a", "1", "del 0000000000000001")))
			spark.Call(t, "maintain", "a")
			spark.Call(t, "close", "a")
			spark.Call(t, "open", "a", root, "0", "0", "default", "stateStore.compression.codec=zstd")
			require.Equal(t, "0000000000000001 0000000000000011\n0000000000000002 0000000000000012\n", string(spark.Call(t, "dump", "a", "1")))
			require.Equal(t, "0000000000000002 0000000000000012\n", string(spark.Call(t, "dump", "a", "2")))
			_, err := spark.Try(t, "dump", "a", "3")
			require.Error(t, err)
		})
	}
}

func TestAQueryOfSparkGoesOnWhereItEnded(t *testing.T) {
	for _, version := range []string{"3.5.7", SparkVersion} {
		t.Run(version, func(t *testing.T) {
			spark := RequireSpark(t, version, EngineSettings{})
			dir := t.TempDir()
			batch := func(i int, row string) {
				name := filepath.Join(dir, "left", fmt.Sprint(i, ".json"))
				require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
				require.NoError(t, os.WriteFile(name, []byte(row), 0o600))
				at := time.Unix(1_700_000_000+int64(i), 0)
				require.NoError(t, os.Chtimes(name, at, at))
			}
			batch(0, `{"key":"a","n":1,"ts":"2024-01-01T00:00:01Z"}`)
			spark.Call(t, "query", "aggregation", dir)
			batch(1, `{"key":"a","n":2,"ts":"2024-01-01T00:00:02Z"}`)
			spark.Call(t, "query", "aggregation", dir)
			last, err := os.ReadFile(filepath.Join(dir, "output", "1"))
			require.NoError(t, err)
			require.Equal(t, `{"key":"a","count":2,"sum":3,"last":"2024-01-01T00:00:02.000Z"}`+"\n", string(last))
		})
	}
}
