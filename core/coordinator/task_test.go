package coordinator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The ids were computed by Flink 2.3.0 (StreamGraphHasherV2.generateUserSpecifiedHash).
func TestTheOperatorIDOfAUIDIsThatOfFlink(t *testing.T) {
	for uid, want := range map[string]string{
		"":                        "00000000000000000000000000000000",
		"a":                       "897859f6655555855a890e51483ab5e6",
		"counter":                 "0da08f51eaa85fc298e176a139b3649a",
		"source-1":                "f0bd8a29f4afd2e5cc43b41a168f6ab5",
		"0123456789abcde":         "5123bfc0f6d52da6f04c547c0cf5cc4f",
		"0123456789abcdef":        "a7d14acf946de04bda08a7635c5bc387",
		"0123456789abcdefg":       "def945aa2d61328eee72c306c2f40008",
		strings.Repeat("x", 1000): "8b626db74177da8444243bc54d695178",
		"a longer uid with spaces, ümläuts and 日本語 \U0001F600": "b1a896cec662997ca0a0c5f338d03535",
	} {
		require.Equal(t, want, OperatorIDOf(uid).String(), uid)
	}
}
