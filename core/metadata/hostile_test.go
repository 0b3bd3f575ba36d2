package metadata

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// everything is some golden files that together have about every kind of handle and layout.
func everything(t testing.TB) map[string][]byte {
	files := make(map[string][]byte)
	for _, g := range ownGolden(t) {
		switch g.name {
		case "everything-v3", "everything-merged-v6", "written-by-1.10.3-v2", "written-by-1.11.6-channels-v3",
			"written-by-1.14.6-changelog-v3":
			files[g.name] = g.data(t)
		}
	}
	require.Len(t, files, 5)
	return files
}

func TestTruncatedFilesAreCorrupt(t *testing.T) {
	for name, data := range everything(t) {
		t.Run(name, func(t *testing.T) {
			for n := 0; n < len(data); n += 1 + n/1000 {
				_, err := Parse(data[:n:n], "")
				require.ErrorIs(t, err, core.ErrCorrupt, "%d of %d bytes", n, len(data))
			}
		})
	}
}

// A flipped bit must not do harm; most are not noticed, as the format has no checksum.
func TestFlippedBitsDoNoHarm(t *testing.T) {
	for name, data := range everything(t) {
		t.Run(name, func(t *testing.T) {
			for i := 0; i < len(data); i += 1 + i/1000 {
				bit := byte(1) << (i % 8)
				data[i] ^= bit
				switch c, err := Parse(data, "file:/dir"); {
				case err != nil:
					requireRefused(t, err)
				case i%64 == 0: // costly
					harmless(t, c)
				}
				data[i] ^= bit
			}
		})
	}
}

// harmless does everything with a checkpoint that was read.
func harmless(t testing.TB, c *Checkpoint) {
	var dump countingWriter
	require.NoError(t, DumpFlink(&dump, c, nil))
	if objects, err := Objects(c); err == nil {
		for _, o := range objects {
			require.NotContains(t, o.Path, "/../")
		}
	}
	if c.Properties != nil {
		c.Properties.read = nil
		if c.Properties.Type.Class != CheckpointClass && c.Properties.Type.Class != SavepointClass {
			c.Properties = nil // of another Flink: only its own bytes can be written
		}
	}
	for _, version := range []int{3, 4, 6} {
		data, err := Append(nil, c, WriteOptions{Version: version, Footer: c.Footer})
		require.NoError(t, err)
		_, err = Parse(data, "")
		require.NoError(t, err, "what was written cannot be read")
	}
	for _, o := range c.Operators {
		for _, s := range o.Subtasks {
			if s.State != nil {
				data, err := AppendSubtask(nil, s.State)
				require.NoError(t, err)
				_, err = ParseSubtask(data)
				require.NoError(t, err)
			}
		}
	}
}

// hostileFile begins a file of the given version and writes the rest with body.
func hostileFile(version int, body func(e *encoder)) []byte {
	e := &encoder{version: version}
	e.u32(fileMagic)
	e.i32(version)
	e.i64(1) // checkpoint id
	e.i32(0) // master states
	body(e)
	return e.buf
}

// oneSubtask begins an operator with one subtask.
func (e *encoder) oneSubtask() {
	e.i32(1)
	if e.version >= firstWithNames {
		e.text("n")
		e.text("u")
	}
	e.buf = append(e.buf, make([]byte, 16)...)
	e.i32(1)
	e.i32(128)
	e.u8(tagNone)
	e.i32(1)
	e.i32(0)
}

func (e *encoder) repeat(n int, b ...byte) {
	e.buf = append(e.buf, bytes.Repeat(b, n)...)
}

// greedy are files that cost as much memory for their length as one can make them: lists of the smallest elements, announced or
// really there, at all depths.
func greedy(n int) map[string][]byte {
	return map[string][]byte{
		"finished subtasks": hostileFile(3, func(e *encoder) {
			e.i32(1)
			e.buf = append(e.buf, make([]byte, 16)...)
			e.i32(1)
			e.i32(1)
			e.u8(tagNone)
			e.i32(n)
			e.repeat(n, 0xff, 0xff, 0xff, 0xff)
		}),
		"operators": hostileFile(4, func(e *encoder) {
			e.i32(n)
			e.repeat(n, make([]byte, minOperatorV3)...)
			e.u32(javaHeader)
			e.u8(tcNull)
		}),
		"empty states": hostileFile(4, func(e *encoder) {
			e.i32(1)
			e.buf = append(e.buf, make([]byte, 16)...)
			e.i32(1)
			e.i32(1)
			e.u8(tagNone)
			e.i32(n)
			e.repeat(n, make([]byte, 4+4+4+1+1+4+4)...)
		}),
		"state names": hostileFile(6, func(e *encoder) {
			e.oneSubtask()
			e.i32(1)
			e.u8(tagOperator)
			e.i32(n)
			e.repeat(n, make([]byte, minNamedState)...)
		}),
		"files in empty segments": hostileFile(4, func(e *encoder) {
			e.oneSubtask()
			e.u32(0)
			e.u32(0)
			e.u8(tagIncremental)
			e.i64(1)
			e.text("")
			e.u32(0)
			e.u32(0)
			e.i64(0)
			e.u8(tagEmptySegment)
			e.i32(n)
			e.repeat(n, 0, 0, tagEmptySegment)
		}),
		"changelogs that announce more and more": hostileFile(3, func(e *encoder) {
			e.oneSubtask()
			e.u32(0)
			e.u32(0)
			for range maxDepth - 1 {
				e.u8(tagChangelog)
				e.u32(0)
				e.u32(1)
				e.i64(0)
				e.i32(n)
			}
			e.repeat(n, 0)
		}),
		"materialised key groups": hostileFile(3, func(e *encoder) {
			e.oneSubtask()
			e.u32(0)
			e.u32(0)
			e.u8(tagChangelogV1)
			e.u32(0)
			e.u32(1)
			e.i64(0)
			e.i32(n)
			e.repeat(n, tagKeyGroupsV1, 0, 0, 0, 0, 0, 0, 0, 0, tagEmptySegment)
		}),
		"channels of Flink 1.11": hostileFile(3, func(e *encoder) {
			e.oneSubtask()
			e.u32(0)
			e.u32(0)
			e.u8(tagNone)
			e.u8(tagNone)
			e.i32(n)
			e.repeat(n, append(make([]byte, 20), tagEmptySegment)...)
			e.u8(99)
		}),
		"files beside a channel of Flink 1.11": hostileFile(3, func(e *encoder) {
			e.oneSubtask()
			e.u32(0)
			e.u32(0)
			e.u8(tagIncrementalV1)
			e.i64(1)
			e.text("")
			e.u32(0)
			e.u32(0)
			e.u8(tagEmptySegment)
			e.i32(n)
			e.repeat(n, 0, 0, tagEmptySegment)
			e.i32(0)
			e.u8(tagNone)
			e.i32(1)
			e.repeat(20, 0)
			e.u8(tagEmptySegment)
			e.i32(0)
		}),
		"changes of Flink 1.14": hostileFile(3, func(e *encoder) {
			e.oneSubtask()
			e.u32(0)
			e.u32(0)
			e.u8(tagChangelogV1)
			e.u32(0)
			e.u32(1)
			e.u32(0)
			e.i32(n)
			e.repeat(n, append([]byte{tagChangelogFileV1}, make([]byte, 20)...)...)
			e.u8(99)
		}),
		"segments": hostileFile(6, func(e *encoder) {
			e.oneSubtask()
			e.u32(0)
			e.u32(0)
			e.u8(tagChangelogFile)
			e.u32(0)
			e.u32(0)
			e.i32(n)
			e.repeat(n, 0, 0, 0, 0, 0, 0, 0, 0, tagEmptySegment)
		}),
		"inline names": hostileFile(6, func(e *encoder) {
			e.oneSubtask()
			e.u32(0)
			e.u32(0)
			e.u8(tagChangelogFile)
			e.u32(0)
			e.u32(0)
			e.i32(n)
			e.repeat(n, 0, 0, 0, 0, 0, 0, 0, 0, tagBytes, 0, 1, 'x', 0, 0, 0, 1, 7)
		}),
		"Java classes with many fields": hostileFile(4, func(e *encoder) {
			e.i32(0)
			e.u32(javaHeader)
			for range min(n/(3*maxJavaFields)+1, maxJavaObjects-1) {
				e.u8(tcClassDesc)
				e.u8(0)
				e.u8(0)
				e.i64(0)
				e.u8(scSerializable)
				e.u8(1)
				e.u8(0)
				e.repeat(maxJavaFields, 'Z', 0, 0)
				e.u8(tcEndBlockData)
			}
		}),
		"Java objects in an array": hostileFile(4, func(e *encoder) {
			e.i32(0)
			e.u32(javaHeader)
			e.u8(tcArray)
			e.u8(tcClassDesc)
			e.text("[Ljava.lang.String;")
			e.i64(0)
			e.u8(scSerializable)
			e.u8(0)
			e.u8(0)
			e.u8(tcEndBlockData)
			e.u8(tcNull)
			e.i32(n)
			e.repeat(n, tcString, 0, 0)
		}),
	}
}

// allocated returns the bytes that do allocates in all, whether they are still used or not.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func requireBounded(t *testing.T, data []byte) int64 {
	t.Helper()
	got := allocated(func() { _, _ = Parse(data, "file:/dir") })
	if most := 16*int64(len(data)) + 1<<20; got > most {
		t.Fatalf("%d bytes of input cost %d bytes of memory, %d are allowed", len(data), got, most)
	}
	return got
}

func TestMemoryForHostileFilesIsBounded(t *testing.T) {
	for _, n := range []int{10, 1000, 50_000} {
		for name, data := range greedy(n) {
			got := requireBounded(t, data)
			t.Logf("%-40s %9d bytes of input: %5.2f allocated for each", name, len(data), float64(got)/float64(len(data)))
		}
	}
	for _, g := range ownGolden(t) {
		requireBounded(t, g.data(t))
	}
	_, err := Parse(greedy(1000)["files beside a channel of Flink 1.11"], "")
	require.NoError(t, err, "the layouts were not tried")
}

// Every number of 32 bits in a file may be a count.
func TestHugeCountsAreCheap(t *testing.T) {
	counts := []uint32{math.MaxInt32, math.MaxInt32 - 8, 1 << 20, 1000}
	for _, data := range everything(t) {
		for i := headerLength; i+4 <= len(data); i += 1 + i/1000 {
			saved := binary.BigEndian.Uint32(data[i:])
			binary.BigEndian.PutUint32(data[i:], counts[i%len(counts)])
			requireBounded(t, data)
			binary.BigEndian.PutUint32(data[i:], saved)
		}
	}
}

func TestHandlesMayNotBeNestedForEver(t *testing.T) {
	for name, nested := range map[string]func(e *encoder){
		"streams": func(e *encoder) {
			e.u32(1)
			e.u8(tagOperator)
			e.u32(0)
			e.repeat(200_000, tagKeyGroupsV1, 0, 0, 0, 0, 0, 0, 0, 0)
		},
		"changelogs": func(e *encoder) {
			e.u32(0)
			e.u32(0)
			e.repeat(200_000, tagChangelog, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(hostileFile(6, func(e *encoder) {
				e.oneSubtask()
				nested(e)
			}), "")
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.ErrorContains(t, err, "inside each other")
		})
	}
	_, err := Parse(hostileFile(6, func(e *encoder) {
		e.i32(0)
		e.u32(javaHeader)
		e.repeat(200_000, tcObject)
	}), "")
	require.ErrorIs(t, err, core.ErrCorrupt)

	// A class that is its own superclass.
	_, err = Parse(hostileFile(6, func(e *encoder) {
		e.i32(0)
		e.u32(javaHeader)
		e.u8(tcObject)
		e.u8(tcClassDesc)
		e.text("x")
		e.i64(0)
		e.u8(scSerializable)
		e.u8(0)
		e.u8(0)
		e.u8(tcEndBlockData)
		e.u8(tcReference)
		e.u32(firstHandle)
	}), "")
	require.ErrorIs(t, err, core.ErrCorrupt)
}

func TestErrorsSayWhere(t *testing.T) {
	for name, want := range map[string]Error{
		"bad-scope":                        {Offset: 89, Field: "operators[0].subtasks[0].managedOperator.delegate"},
		"bad-mode":                         {Offset: 75, Field: "operators[0].subtasks[0].managedOperator.states[0]"},
		"coordinator-is-file":              {Offset: 54, Field: "operators[0].coordinator"},
		"empty":                            {Offset: 0},
		"huge-key-group-count":             {Offset: 76, Field: "operators[0].subtasks[0].managedKeyed"},
		"huge-operator-count":              {Offset: 20, Field: "operators"},
		"huge-parallelism":                 {Offset: 46, Field: "operators[0]"},
		"negative-checkpoint-id":           {Offset: 8, Field: "id"},
		"master-trailing-bytes":            {Offset: 24, Field: "masterStates[0]"},
		"properties-not-java":              {Offset: 24, Field: "properties"},
		"subtask-index-beyond-parallelism": {Offset: 59, Field: "operators[0].subtasks[0]"},
		"trailing-bytes":                   {Offset: 6524},
		"version-7":                        {Offset: 4},
	} {
		t.Run(name, func(t *testing.T) {
			for _, g := range ownGolden(t) {
				if g.kind == "hostile" && g.name == name {
					_, err := Parse(g.data(t), "")
					var e *Error
					require.ErrorAs(t, err, &e)
					require.Equal(t, want.Offset, e.Offset, "%v", err)
					require.Equal(t, want.Field, e.Field, "%v", err)
					return
				}
			}
			t.Fatal("no such golden file")
		})
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[uint32]error{
		0: core.ErrCorrupt, 1: core.ErrUnsupportedVersion, 7: core.ErrUnsupportedVersion, math.MaxInt32: core.ErrUnsupportedVersion,
		math.MaxUint32: core.ErrCorrupt, 1 << 31: core.ErrCorrupt,
	} {
		data := binary.BigEndian.AppendUint32(nil, fileMagic)
		data = binary.BigEndian.AppendUint32(data, version)
		_, err := Parse(append(data, make([]byte, 100)...), "")
		require.ErrorIs(t, err, want, "version %d", version)
	}
}

func FuzzParse(f *testing.F) {
	for _, g := range ownGolden(f) {
		if data := g.data(f); len(data) < 1<<14 {
			f.Add(data)
		}
	}
	for _, data := range greedy(10) {
		f.Add(data)
	}
	m := newMaker(f)
	for range 20 {
		data, err := Append(nil, m.checkpoint(), WriteOptions{Version: 3 + m.IntN(4), Footer: m.footer()})
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		requireBounded(t, data)
		c, err := Parse(data, "file:/dir")
		if err != nil {
			requireRefused(t, err)
			return
		}
		harmless(t, c)
	})
}

func FuzzParseSubtask(f *testing.F) {
	m := newMaker(f)
	for range 50 {
		data, err := AppendSubtask(nil, m.state())
		require.NoError(f, err)
		f.Add(data[:len(data)-subtaskTail])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e := &encoder{buf: bytes.Clone(data)}
		e.u32(e.checksum()) // else nothing but the checksum is tested
		s, err := ParseSubtask(e.buf)
		if err != nil {
			requireRefused(t, err)
			return
		}
		again, err := AppendSubtask(nil, s)
		require.NoError(t, err)
		_, err = ParseSubtask(again)
		require.NoError(t, err)
	})
}
