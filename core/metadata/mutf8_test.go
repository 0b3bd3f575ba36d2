package metadata

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModifiedUTF8IsThatOfJava(t *testing.T) {
	for text, encoded := range map[string]string{
		"":               "",
		"plain \x7f":     "plain \x7f",
		"\x00":           "\xc0\x80",
		"é":              "\xc3\xa9",
		"\u07ff":         "\xdf\xbf",
		"\u0800\uffff":   "\xe0\xa0\x80\xef\xbf\xbf",
		"文":              "\xe6\x96\x87",
		"😀":              "\xed\xa0\xbd\xed\xb8\x80",
		"\xed\xa0\x80":   "\xed\xa0\x80", // lone high surrogate
		"x\xed\xbf\xbf":  "x\xed\xbf\xbf",
		"\xed\xb0\x80😀":  "\xed\xb0\x80\xed\xa0\xbd\xed\xb8\x80",
		"\xed\xa0\x80a😀": "\xed\xa0\x80a\xed\xa0\xbd\xed\xb8\x80",
		"\U0010ffff":     "\xed\xaf\xbf\xed\xbf\xbf",
	} {
		got, ok := appendModifiedUTF8([]byte("before"), text)
		require.True(t, ok, "%q", text)
		require.Equal(t, "before"+encoded, string(got))
		back, ok := appendDecodedUTF8(nil, []byte(encoded))
		require.True(t, ok, "%q", encoded)
		require.Equal(t, text, string(back))
	}
}

func TestOverlongFormsAreReadAsJavaReadsThem(t *testing.T) {
	for encoded, text := range map[string]string{
		"\x00":                     "\x00",
		"\xc1\x81":                 "A",
		"\xe0\x81\x81":             "A",
		"\xc0\xae\xe0\x80\xae":     "..",
		"\xe0\x83\xa9":             "é",
		"\xed\xa0\xbd\xe0\x81\x81": "\xed\xa0\xbdA",
	} {
		got, ok := appendDecodedUTF8(nil, []byte(encoded))
		require.True(t, ok, "%q", encoded)
		require.Equal(t, text, string(got))
	}
}

func TestMalformedModifiedUTF8IsRefused(t *testing.T) {
	for _, encoded := range []string{
		"\x80", "\xbf", "\xc3", "\xc3a", "\xe6\x96", "\xe6a\x87", "\xe6\x96a", "\xf0\x9f\x98\x80", "\xff", "ok\xed\xa0", "\xed\xa0\xbd\xff",
	} {
		_, ok := appendDecodedUTF8(nil, []byte(encoded))
		require.False(t, ok, "%q", encoded)
	}
}

func TestBytesThatAreNoTextCannotBeWritten(t *testing.T) {
	for _, text := range []string{"\xff", "a\xc3", "\xed\xa0", "\xed\x41\x80", "\x80", "\xc1\x81"} {
		_, ok := appendModifiedUTF8(nil, text)
		require.False(t, ok, "%q", text)
	}
}

func FuzzModifiedUTF8(f *testing.F) {
	for _, s := range []string{"", "abc", "\xc0\x80", "\xed\xa0\xbd\xed\xb8\x80", "\xed\xa0\x80", "\xe6\x96\x87", "\xc3\xa9", "\xc1\x81"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		text, ok := appendDecodedUTF8(nil, encoded)
		if !ok {
			return
		}
		require.LessOrEqual(t, len(text), len(encoded))
		again, ok := appendModifiedUTF8(nil, string(text))
		require.True(t, ok)
		back, ok := appendDecodedUTF8(nil, again)
		require.True(t, ok)
		require.Equal(t, text, back)
	})
}
