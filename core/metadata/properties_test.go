package metadata

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestNewPropertiesAreThoseOfFlink(t *testing.T) {
	forced := SavepointProperties(false)
	unforced := SavepointProperties(true)
	unforced.Forced = false
	suspend := SavepointProperties(false)
	suspend.Type.Name, suspend.Type.Action = "Suspend Savepoint", "SUSPEND"
	for name, p := range map[string]*Properties{
		"properties-checkpoint-never-retained-v4":         CheckpointProperties(RetainNever),
		"properties-checkpoint-retain-on-failure-v4":      CheckpointProperties(RetainOnFailure),
		"properties-checkpoint-retain-on-cancellation-v4": CheckpointProperties(RetainOnCancellation),
		"properties-savepoint-forced-canonical-v4":        forced,
		"properties-savepoint-forced-native-v4":           SavepointProperties(true),
		"properties-savepoint-native-v4":                  unforced,
		"properties-suspend-forced-canonical-v4":          suspend,
		"properties-null-v4":                              {Null: true},
	} {
		want := golden(t, name)
		got, err := Append(nil, &Checkpoint{ID: 29, Properties: p}, WriteOptions{Version: 4})
		require.NoError(t, err)
		require.Equal(t, want, got, name)
		read, err := Parse(want, "")
		require.NoError(t, err)
		require.Equal(t, p, forget(read).Properties)
		require.Equal(t, p.Type.Class == SavepointClass, p.IsSavepoint())
	}
	require.False(t, (*Properties)(nil).IsSavepoint())
}

func TestNoPropertiesAreWrittenAsNull(t *testing.T) {
	without, err := Append(nil, &Checkpoint{ID: 29}, WriteOptions{Version: 4})
	require.NoError(t, err)
	require.Equal(t, golden(t, "properties-null-v4"), without)

	data, err := Append(nil, &Checkpoint{ID: 29, Properties: &Properties{Null: true}}, WriteOptions{Version: 3})
	require.NoError(t, err)
	c, err := Parse(data, "")
	require.NoError(t, err)
	require.Nil(t, c.Properties, "version 3 has none")
}

// withProperties is a file of version 4 with the given bytes as properties.
func withProperties(raw func(e *encoder)) []byte {
	return hostileFile(4, func(e *encoder) {
		e.i32(0)
		e.u32(javaHeader)
		raw(e)
	})
}

// futureProperties are what a later Flink might write: other ids, fields of all types, superclasses, classes with code of their own.
func futureProperties(e *encoder) {
	w := &javaWriter{encoder: e}
	e.u8(tcObject)
	e.u8(tcClassDesc)
	e.text(propertiesClass)
	e.i64(99)
	w.handle()
	e.u8(scSerializable | scWriteMethod)
	e.buf = append(e.buf, 0, 12)
	for _, f := range []struct{ kind, name, signature string }{
		{"B", "b", ""},
		{"C", "c", ""},
		{"D", "d", ""},
		{"F", "f", ""},
		{"I", "i", ""},
		{"J", "j", ""},
		{"S", "s", ""},
		{"Z", "discardFailed", ""},
		{"Z", "brandNew", ""},
		{"[", "array", "[I"},
		{"[", "objects", "[Ljava.lang.String;"},
		{"L", "checkpointType", typeSignature},
	} {
		e.u8(f.kind[0])
		e.text(f.name)
		if f.signature != "" {
			w.string(f.signature)
		}
	}
	e.u8(tcBlockData) // annotation of the class
	e.u8(2)
	e.buf = append(e.buf, 1, 2)
	e.u8(tcEndBlockData)
	w.class("com.example.Super", 1, scSerializable, "forced", "Z") // superclass
	e.u8(tcNull)
	w.handle()

	e.u8(1)                                                          // forced, of the superclass
	e.buf = append(e.buf, make([]byte, 1+2+8+4+4+8+2)...)            // b to s
	e.buf = append(e.buf, 1, 1)                                      // discardFailed, brandNew
	e.u8(tcArray)                                                    // array
	w.class("[I", 5, scSerializable)                                 //
	e.u8(tcNull)                                                     //
	w.handle()                                                       //
	e.i32(2)                                                         //
	e.buf = append(e.buf, make([]byte, 8)...)                        //
	e.u8(tcArray)                                                    // objects
	w.class("[Ljava.lang.String;", 6, scSerializable)                //
	e.u8(tcNull)                                                     //
	w.handle()                                                       //
	e.i32(3)                                                         //
	w.string("x")                                                    //
	e.u8(tcReference)                                                //
	e.u32(firstHandle)                                               //
	e.u8(tcNull)                                                     //
	w.object("com.example.RegionalType", 7, "name", stringSignature) // checkpointType
	w.string("Regional Checkpoint")
	e.u8(tcBlockDataLong) // what the class adds
	e.i32(3)
	e.buf = append(e.buf, 1, 2, 3)
	e.u8(tcLongString)
	e.i64(2)
	e.buf = append(e.buf, "ab"...)
	e.u8(tcEndBlockData)
}

func TestPropertiesOfALaterFlinkAreReadAndKept(t *testing.T) {
	data := withProperties(futureProperties)
	c, err := Parse(data, "")
	require.NoError(t, err)
	require.True(t, c.Properties.Forced)
	require.True(t, c.Properties.DiscardFailed)
	require.False(t, c.Properties.DiscardSubsumed)
	require.Equal(t, SnapshotType{Class: "com.example.RegionalType", Name: "Regional Checkpoint"}, c.Properties.Type)

	again, err := Append(nil, c, WriteOptions{Version: 4, Footer: &Footer{}})
	require.NoError(t, err)
	require.Equal(t, data, again[:len(data)])
	_, err = Parse(again, "")
	require.NoError(t, err)

	c.Properties.Forced = false
	_, err = Append(nil, c, WriteOptions{Version: 4})
	requireInvalid(t, err, "properties") // nobody knows how to write that
}

func TestChangedPropertiesAreWritten(t *testing.T) {
	c, err := Parse(golden(t, "properties-all-flags-v4"), "")
	require.NoError(t, err)
	c.Properties.Unclaimed = false
	data, err := Append(nil, c, WriteOptions{Version: 4})
	require.NoError(t, err)
	read, err := Parse(data, "")
	require.NoError(t, err)
	require.False(t, read.Properties.Unclaimed)
	require.True(t, read.Properties.Forced)
}

func TestPropertiesThatAreNoneAreCorrupt(t *testing.T) {
	for name, raw := range map[string]func(e *encoder){
		"string":               func(e *encoder) { (&javaWriter{encoder: e}).string("x") },
		"enum":                 func(e *encoder) { (&javaWriter{encoder: e}).enum(formatClass, "NATIVE") },
		"other class":          func(e *encoder) { (&javaWriter{encoder: e}).object("java.util.Date", 0) },
		"class":                func(e *encoder) { (&javaWriter{encoder: e}).class(propertiesClass, 2, scSerializable); e.u8(tcNull) },
		"reference to nothing": func(e *encoder) { e.u8(tcReference); e.u32(firstHandle) },
		"negative reference":   func(e *encoder) { e.u8(tcReference); e.u32(0) },
		"object of no class":   func(e *encoder) { e.u8(tcObject); e.u8(tcNull) },
		"object of a string":   func(e *encoder) { e.u8(tcObject); (&javaWriter{encoder: e}).string("x") },
		"array of no class":    func(e *encoder) { e.u8(tcArray); e.u8(tcNull) },
		"end of block":         func(e *encoder) { e.u8(tcEndBlockData) },
		"exception":            func(e *encoder) { e.u8(0x7b) },
		"nothing":              func(*encoder) {},
		"unknown field type": func(e *encoder) {
			w := &javaWriter{encoder: e}
			w.object(propertiesClass, 2, "f", "Q")
			e.u8(0)
		},
		"externalizable without blocks": func(e *encoder) {
			e.u8(tcObject)
			(&javaWriter{encoder: e}).class(propertiesClass, 2, scExternalizable)
			e.u8(tcNull)
		},
		"long string beyond the end": func(e *encoder) { e.u8(tcLongString); e.i64(1 << 40) },
		"enum without a name": func(e *encoder) {
			e.u8(tcEnum)
			(&javaWriter{encoder: e}).class(formatClass, 0, scSerializable|scEnum)
			e.u8(tcNull)
			e.u8(tcNull)
		},
		"many fields": func(e *encoder) {
			e.u8(tcClassDesc)
			e.text("x")
			e.i64(0)
			e.u8(scSerializable)
			e.buf = append(e.buf, 0xff, 0xff)
			e.repeat(0xffff, 'Z', 0, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(withProperties(raw), "")
			require.ErrorIs(t, err, core.ErrCorrupt)
			require.ErrorContains(t, err, "properties")
		})
	}
}

func TestEveryTruncationOfLaterPropertiesIsCorrupt(t *testing.T) {
	data := withProperties(futureProperties)
	for n := range data {
		_, err := Parse(data[:n], "")
		require.ErrorIs(t, err, core.ErrCorrupt)
	}
}
