package core_test

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// Flink: FsStorageLocationReferenceTest.testEncodeAndDecode.
func TestReferenceRoundTrip(t *testing.T) {
	generator := loggedRand(t)
	for range 2000 {
		qualified := core.Qualify(randomURI(generator), randomName(generator))
		reference := core.EncodeReference(qualified)
		require.False(t, reference.IsDefault())
		decoded, err := reference.Decode()
		require.NoError(t, err, "%q", qualified)
		require.Equal(t, qualified, decoded)
	}
}

func TestReferenceHasFlinksBytes(t *testing.T) {
	require.Equal(t, core.LocationReference("\x05\x5f\x3f\x18hdfs://ns1/a/b"), core.EncodeReference("hdfs://ns1/a/b"))
	require.Equal(t, "055f3f1866696c653a2f61", core.EncodeReference("file:/a").String())
	require.Equal(t, "(default)", core.LocationReference(nil).String())
	require.Equal(t, "(default)", core.LocationReference{}.String())
}

func TestReferenceThatIsNoneIsInvalid(t *testing.T) {
	for name, reference := range map[string]core.LocationReference{
		// Flink: FsStorageLocationReferenceTest.testDecodingTooShortReference.
		"one byte":    {2},
		"magic only":  {0x05, 0x5f, 0x3f, 0x18},
		"three bytes": {0x05, 0x5f, 0x3f},
		// Flink: FsStorageLocationReferenceTest.testDecodingGarbage.
		"garbage": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		// Flink: FsStorageLocationReferenceTest.testDecodingDefaultReference.
		"default":       nil,
		"empty":         {},
		"bad UTF-8":     core.EncodeReference("file:/a\xff"),
		"relative":      core.EncodeReference("a/b"),
		"no path":       core.EncodeReference("hdfs://ns1"),
		"bad scheme":    core.EncodeReference("a b:/c"),
		"only a scheme": core.EncodeReference("file:"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := reference.Decode()
			require.ErrorIs(t, err, fs.ErrInvalid)
		})
	}
}

func TestReferenceDoesNotShareMemoryWithOthers(t *testing.T) {
	a, b := core.EncodeReference("file:/a"), core.EncodeReference("file:/b")
	a[0] = 0
	require.Equal(t, "055f3f1866696c653a2f62", b.String())
	require.Equal(t, "055f3f1866696c653a2f61", core.EncodeReference("file:/a").String())
}

func FuzzLocationReferenceDecode(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte{5, 0x5f, 0x3f, 0x18})
	f.Add([]byte(core.EncodeReference("hdfs://ns1/a/b")))
	f.Add([]byte(core.EncodeReference("file:///a//../b/")))
	f.Add([]byte(core.EncodeReference("file:/\xff")))
	f.Fuzz(func(t *testing.T, data []byte) {
		reference := core.LocationReference(data)
		_ = reference.String()
		qualified, err := reference.Decode()
		if err != nil {
			require.ErrorIs(t, err, fs.ErrInvalid)
			return
		}
		require.True(t, utf8.ValidString(qualified))
		require.Equal(t, data, []byte(core.EncodeReference(qualified)))
		uri, name, err := core.SplitQualified(qualified)
		require.NoError(t, err)
		if uri == "" {
			return
		}
		// Whatever a reference from the network says, only clean names reach a file system.
		_, opened, err := core.OnlyOn(memfs.New(memfs.Options{URI: uri}))(context.Background(), qualified)
		if err == nil {
			require.NoError(t, core.CheckName("open", "/", opened))
			require.Equal(t, name, opened)
		}
	})
}

func randomURI(generator *rand.Rand) string {
	return []string{"file://", "mem://", "hdfs://ns1", "hdfs://nn-1.example.org:8020", "s3a://bucket", "viewfs://c-1"}[generator.IntN(6)]
}

// randomName is a clean absolute name of any allowed characters.
func randomName(generator *rand.Rand) string {
	const odd = "abcdefABZ019 %+-_.~@#?=&;,'\"()[]{}<>|^`*!$\\äπ日😀"
	letters := []rune(odd)
	var name strings.Builder
	for range 1 + generator.IntN(5) {
		name.WriteByte('/')
		component := ""
		for range 1 + generator.IntN(8) {
			component += string(letters[generator.IntN(len(letters))])
		}
		if component == "." || component == ".." {
			component = "x"
		}
		name.WriteString(component)
	}
	return name.String()
}
