package metadata

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What Path.toString and Path.toUri().toString() of Flink 2.3.0 give.
func TestPathsAreThoseOfFlink(t *testing.T) {
	for in, want := range map[string][2]string{
		"hdfs://nn:8020/a/b":          {"hdfs://nn:8020/a/b", "hdfs://nn:8020/a/b"},
		"hdfs://nn//a///b/":           {"hdfs://nn/a/b", "hdfs://nn/a/b"},
		"file:///a/b":                 {"file:/a/b", "file:///a/b"},
		"file:/a/b":                   {"file:/a/b", "file:/a/b"},
		"file:////a":                  {"file:/a", "file:///a"},
		"file://host/a":               {"file://host/a", "file://host/a"},
		"/a//b/":                      {"/a/b", "/a/b"},
		"a/b":                         {"a/b", "a/b"},
		"hdfs:///x":                   {"hdfs:/x", "hdfs:///x"},
		"hdfs://nn":                   {"hdfs://nn", "hdfs://nn"},
		"hdfs://nn/":                  {"hdfs://nn/", "hdfs://nn/"},
		"s3://bucket/a b%20c/é文":      {"s3://bucket/a b%20c/é文", "s3://bucket/a%20b%2520c/é文"},
		"/a/./b":                      {"/a/b", "/a/b"},
		"/a/../b":                     {"/b", "/b"},
		"/a/b/..":                     {"/a/", "/a/"},
		"/a/b/.":                      {"/a/b/", "/a/b/"},
		"/../a":                       {"/../a", "/../a"},
		"hdfs://nn/a/../../b":         {"hdfs://nn/../b", "hdfs://nn/../b"},
		"a/../b":                      {"b", "b"},
		"../a":                        {"../a", "../a"},
		`\a\b`:                        {"/a/b", "/a/b"},
		"/a/b/../..":                  {"/", "/"},
		"/.":                          {"/", "/"},
		"/..":                         {"/..", "/.."},
		"/":                           {"/", "/"},
		"//":                          {"/", "/"},
		"//x":                         {"//x", "//x"},
		"///x":                        {"/x", "///x"},
		"/a/.b/..c/d...":              {"/a/.b/..c/d...", "/a/.b/..c/d..."},
		"/a/\u00a0b\u2028c/d\u0085e":  {"/a/\u00a0b\u2028c/d\u0085e", "/a/%C2%A0b%E2%80%A8c/d%C2%85e"},
		"/a#b?c;d=e&f,g$h!i*j'k(l)m~": {"/a#b?c;d=e&f,g$h!i*j'k(l)m~", "/a%23b%3Fc;d=e&f,g$h!i*j'k(l)m~"},
		"/n[o]p{q}r|s^t`u\"v<w>x@y+z": {"/n[o]p{q}r|s^t`u\"v<w>x@y+z", "/n%5Bo%5Dp%7Bq%7Dr%7Cs%5Et%60u%22v%3Cw%3Ex@y+z"},
		"/q\x7f\x01":                  {"/q\x7f\x01", "/q%7F%01"},
		"/a/😀":                        {"/a/😀", "/a/😀"},
		"hdfs://user@nn:80/x":         {"hdfs://user@nn:80/x", "hdfs://user@nn:80/x"},
		" /a ":                        {" /a ", "%20/a%20"},
	} {
		p := splitFlinkPath(in)
		require.Equal(t, want, [2]string{p.String(), p.uri()}, "%q", in)
	}
}

// What java.util.UUID of OpenJDK 17 makes of them.
func TestIDsOfBackendsAreThoseOfFlink(t *testing.T) {
	for text, want := range map[string]string{
		"00000000-dead-beef-0000-000000000001":  "00000000-dead-beef-0000-000000000001",
		"00000000-DEAD-BEEF-0000-000000000001":  "00000000-dead-beef-0000-000000000001",
		"1-2-3-4-5":                             "00000001-0002-0003-0004-000000000005",
		"+1-2-3-4-5":                            "00000001-0002-0003-0004-000000000005",
		"123456789-12345-12345-12345-1":         "23456789-2345-2345-2345-000000000001",
		"":                                      "d41d8cd9-8f00-3204-a980-0998ecf8427e",
		"heap-state-backend":                    "52b8aeb7-35ea-3b8c-89ae-e2a697dba258",
		"é":                                     "66ddcd97-cfde-3bb2-b6fb-8a999b4bc76f",
		"lone \xed\xa0\x80":                     "add6378b-21c6-3c3a-8f28-814e9b163975",
		"00000000-dead-beef-0000-0000000000011": "5448ccfb-e96c-391b-953a-c18d3ada6ab6",
		"1-2-3-4-5-6":                           "5caaae54-cfd8-3b46-8a0f-c737f995766c",
		"g-2-3-4-5":                             "2706ae6d-e530-3115-97bd-6d9fba92d499",
	} {
		require.Equal(t, want, flinkBackendID(text), "%q", text)
	}
}
