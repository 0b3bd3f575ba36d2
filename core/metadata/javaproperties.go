package metadata

const (
	propertiesClass = "org.apache.flink.runtime.checkpoint.CheckpointProperties"

	typeSignature    = "Lorg/apache/flink/runtime/checkpoint/SnapshotType;"
	stringSignature  = "Ljava/lang/String;"
	sharingClass     = "org.apache.flink.runtime.checkpoint.SnapshotType$SharingFilesStrategy"
	sharingSignature = "Lorg/apache/flink/runtime/checkpoint/SnapshotType$SharingFilesStrategy;"
	formatClass      = "org.apache.flink.core.execution.SavepointFormatType"
	formatSignature  = "Lorg/apache/flink/core/execution/SavepointFormatType;"
	actionClass      = "org.apache.flink.runtime.checkpoint.SavepointType$PostCheckpointAction"
	actionSignature  = "Lorg/apache/flink/runtime/checkpoint/SavepointType$PostCheckpointAction;"
	enumClass        = "java.lang.Enum"

	propertiesUID = 2
	checkpointUID = 0xd6de4f0305ae1d3a
	savepointUID  = 0xa087d308a45814b8
)

// propertyFields are the fields of the Java classes that mean something here.
var propertyFields = map[string]struct{}{
	"discardCancelled": {}, "discardFailed": {}, "discardFinished": {}, "discardSubsumed": {}, "discardSuspended": {},
	"forced": {}, "unclaimed": {}, "checkpointType": {},
	"name": {}, "sharingFilesStrategy": {}, "formatType": {}, "postCheckpointAction": {},
}

// maxProperties bounds the bytes of the properties, of which Flink writes less than a thousand.
const maxProperties = 1 << 20

// properties reads the last part of a body from version 4 on.
func (p *parser) properties() *Properties {
	// They are kept as they are, so they must be in memory in one piece.
	p.has(min(p.rest(), maxProperties))
	data, more := p.data, p.more
	p.data, p.more = data[:min(len(data), p.off+maxProperties)], 0
	props := p.propertiesInMemory()
	if p.err == nil {
		p.data, p.more = data, more
	}
	return props
}

func (p *parser) propertiesInMemory() *Properties {
	at := p.off
	r := &javaReader{parser: p}
	var props Properties
	switch o := r.read().(type) {
	case nil:
		props.Null = true
	case *javaObject:
		if o.class != propertiesClass {
			p.fail(corrupt(p.base+at, "a Java object of class %.200q instead of the properties", o.class))
		}
		props = propertiesFromJava(o)
	default:
		p.fail(corrupt(p.base+at, "a Java object that is not the properties"))
	}
	if p.err != nil {
		return nil
	}
	parsed := props
	props.read = &readProperties{raw: append([]byte(nil), p.data[at:p.off]...), values: parsed}
	return &props
}

func propertiesFromJava(o *javaObject) Properties {
	flag := func(name string) bool {
		v, _ := o.fields[name].(bool)
		return v
	}
	p := Properties{
		Forced:           flag("forced"),
		Unclaimed:        flag("unclaimed"),
		DiscardSubsumed:  flag("discardSubsumed"),
		DiscardFinished:  flag("discardFinished"),
		DiscardCancelled: flag("discardCancelled"),
		DiscardFailed:    flag("discardFailed"),
		DiscardSuspended: flag("discardSuspended"),
	}
	if t, ok := o.fields["checkpointType"].(*javaObject); ok {
		p.Type.Class = t.class
		p.Type.Name, _ = t.fields["name"].(string)
		p.Type.Sharing = enumName(t.fields["sharingFilesStrategy"])
		p.Type.Format = enumName(t.fields["formatType"])
		p.Type.Action = enumName(t.fields["postCheckpointAction"])
	}
	return p
}

func enumName(v any) string {
	e, _ := v.(javaEnum)
	return e.name
}

// properties writes what Flink 1.16 to 2.3 write, or what was read. Nil properties are written as null: every version of
// Flink reads that.
func (e *encoder) properties(p *Properties) {
	if p != nil {
		if raw, same := p.unchanged(); same {
			e.buf = append(e.buf, raw...)
			return
		}
	}
	e.u32(javaHeader)
	if p == nil || p.Null {
		e.u8(tcNull)
		return
	}
	w := &javaWriter{encoder: e}
	w.object(propertiesClass, propertiesUID, "discardCancelled", "Z", "discardFailed", "Z", "discardFinished", "Z",
		"discardSubsumed", "Z", "discardSuspended", "Z", "forced", "Z", "unclaimed", "Z", "checkpointType", typeSignature)
	for _, flag := range [...]bool{
		p.DiscardCancelled, p.DiscardFailed, p.DiscardFinished, p.DiscardSubsumed, p.DiscardSuspended, p.Forced, p.Unclaimed,
	} {
		e.boolean(flag)
	}
	switch t := p.Type; t.Class {
	case "":
		e.u8(tcNull)
	case CheckpointClass:
		w.object(CheckpointClass, checkpointUID, "name", stringSignature, "sharingFilesStrategy", sharingSignature)
		w.string(t.Name)
		w.enum(sharingClass, t.Sharing)
	case SavepointClass:
		w.object(SavepointClass, savepointUID, "formatType", formatSignature, "name", stringSignature,
			"postCheckpointAction", actionSignature)
		w.enum(formatClass, t.Format)
		w.string(t.Name)
		w.enum(actionClass, t.Action)
	default:
		e.fail(invalid("the snapshot type %.200q cannot be written", t.Class))
	}
}

// javaWriter writes objects of which no class occurs twice, but that of enums.
type javaWriter struct {
	*encoder
	next    uint32 // handle of the next object
	superOf uint32 // handle of java.lang.Enum, if it was written
}

func (w *javaWriter) class(name string, uid uint64, flags byte, fields ...string) uint32 {
	w.u8(tcClassDesc)
	w.text(name)
	w.i64(int64(uid))
	handle := w.handle()
	w.u8(flags)
	w.buf = append(w.buf, 0, byte(len(fields)/2))
	for i := 0; i < len(fields); i += 2 {
		field, signature := fields[i], fields[i+1]
		w.u8(signature[0])
		w.text(field)
		if len(signature) > 1 {
			w.string(signature)
		}
	}
	w.u8(tcEndBlockData)
	return handle
}

func (w *javaWriter) handle() uint32 {
	w.next++
	return firstHandle + w.next - 1
}

// object writes everything of an object but its values. The fields are pairs of name and signature, in Java's order.
func (w *javaWriter) object(name string, uid uint64, fields ...string) {
	w.u8(tcObject)
	w.class(name, uid, scSerializable, fields...)
	w.u8(tcNull) // no superclass
	w.handle()
}

// string writes a string, null for "".
func (w *javaWriter) string(s string) {
	if s == "" {
		w.u8(tcNull)
		return
	}
	w.u8(tcString)
	w.handle()
	w.text(s)
}

// enum writes a constant, null for "".
func (w *javaWriter) enum(class, constant string) {
	if constant == "" {
		w.u8(tcNull)
		return
	}
	w.u8(tcEnum)
	w.class(class, 0, scSerializable|scEnum)
	if w.superOf == 0 {
		w.superOf = w.class(enumClass, 0, scSerializable|scEnum)
		w.u8(tcNull)
	} else {
		w.u8(tcReference)
		w.u32(w.superOf)
	}
	w.handle()
	w.string(constant)
}
