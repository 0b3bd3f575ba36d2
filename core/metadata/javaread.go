package metadata

// The properties are one object in Java's serialisation format. This reader takes any object, so that fields, classes and
// ids that later versions of Flink add do no harm; it keeps only what propertiesFromJava asks for.
//
// Grammar (Java Object Serialization Specification, chapter 6; X is one byte):
//
//	stream  AC ED 00 05 content
//	content 70                                             null
//	        71 i32                                         reference to an earlier object
//	        72 utf-name i64-uid newHandle X-flags fields annotation super   class
//	        73 class newHandle values                      object
//	        74 newHandle utf | 7C newHandle i64-length…    string
//	        75 class newHandle i32-n n × value             array
//	        76 class newHandle                             class object
//	        7D newHandle i32-n n × utf annotation super    proxy class
//	        7E class newHandle string                      enum constant
//	fields  u16 n, n × (X-type utf-name [string-type if X is 'L' or '['])
//	annotation  (content | 77 X-length… | 7A i32-length…)… 78
const (
	javaHeader = 0xaced0005

	tcNull           = 0x70
	tcReference      = 0x71
	tcClassDesc      = 0x72
	tcObject         = 0x73
	tcString         = 0x74
	tcArray          = 0x75
	tcClass          = 0x76
	tcBlockData      = 0x77
	tcEndBlockData   = 0x78
	tcBlockDataLong  = 0x7a
	tcLongString     = 0x7c
	tcProxyClassDesc = 0x7d
	tcEnum           = 0x7e

	scWriteMethod    = 1
	scSerializable   = 2
	scExternalizable = 4
	scBlockData      = 8
	scEnum           = 16

	firstHandle = 0x7e0000

	// The properties of today are 9 to 16 objects of which 3 are nested. The limits leave room for more and none for games.
	maxJavaObjects = 1024
	maxJavaDepth   = 32
	maxJavaFields  = 256
)

type javaClass struct {
	name   string
	flags  byte
	fields []javaField
	super  *javaClass
}

type javaField struct {
	kind byte
	name string
}

type javaEnum struct{ name string }

type javaObject struct {
	class  string
	fields map[string]any // string, bool, javaEnum, *javaObject or nil; others are left out
}

// javaReader reads one object. Values are nil, bool, string, javaEnum, *javaObject, *javaClass, or javaOther.
type javaReader struct {
	*parser
	handles []any
	depth   int
}

// javaOther stands for what has no meaning here: arrays, numbers, class objects.
type javaOther struct{}

// read reads the header and one object.
func (r *javaReader) read() any {
	at := r.pos()
	if header := uint32(r.i32()); header != javaHeader && r.err == nil {
		r.fail(corrupt(at, "%08x does not begin a stream of Java objects", header))
	}
	if r.err != nil {
		return nil
	}
	return r.content(r.pos(), r.u8())
}

func (r *javaReader) remember(v any) int {
	if len(r.handles) == maxJavaObjects {
		r.fail(corrupt(r.pos(), "more than %d Java objects", maxJavaObjects))
		return 0
	}
	r.handles = append(r.handles, v)
	return len(r.handles) - 1
}

func (r *javaReader) content(at int, tag byte) any {
	if r.err != nil {
		return nil
	}
	if r.depth++; r.depth > maxJavaDepth {
		r.fail(corrupt(at, "more than %d Java objects inside each other", maxJavaDepth))
		return nil
	}
	defer func() { r.depth-- }()
	switch tag {
	case tcNull:
		return nil
	case tcReference:
		return r.reference()
	case tcClassDesc, tcProxyClassDesc:
		return r.newClass(tag)
	case tcObject:
		return r.object()
	case tcString:
		return r.string(r.text())
	case tcLongString:
		return r.longString()
	case tcArray:
		return r.array()
	case tcClass:
		r.class()
		r.remember(javaOther{})
		return javaOther{}
	case tcEnum:
		return r.enum()
	}
	r.fail(corrupt(at, "%02x does not begin a Java object", tag))
	return nil
}

func (r *javaReader) string(s string) string {
	r.remember(s)
	return s
}

func (r *javaReader) longString() any {
	at := r.pos()
	n := r.i64()
	if n < 0 || n > int64(r.rest()) {
		r.fail(corrupt(at, "a string of %d bytes", n))
		return nil
	}
	r.bytes(int(n))
	r.remember(javaOther{})
	return javaOther{}
}

func (r *javaReader) reference() any {
	at := r.pos()
	index := int64(r.i32()) - firstHandle
	if index < 0 || index >= int64(len(r.handles)) {
		r.fail(corrupt(at, "a reference to a Java object that was not there"))
		return nil
	}
	return r.handles[index]
}

// class reads a class where one must be; nil is the class of nothing.
func (r *javaReader) class() *javaClass {
	at := r.pos()
	switch c := r.content(at, r.u8()).(type) {
	case nil:
		return nil
	case *javaClass:
		return c
	}
	r.fail(corrupt(at, "this is not a Java class"))
	return nil
}

func (r *javaReader) newClass(tag byte) *javaClass {
	c := new(javaClass)
	if tag == tcProxyClassDesc {
		r.remember(c)
		c.flags = scSerializable
		for range r.length(2) {
			r.text()
		}
	} else {
		c.name = r.text()
		r.i64()
		r.remember(c)
		c.flags = r.u8()
		r.fields(c)
	}
	r.annotation()
	if r.err == nil {
		c.super = r.class()
	}
	return c
}

func (r *javaReader) fields(c *javaClass) {
	at := r.pos()
	n := r.u16()
	if n > maxJavaFields {
		r.fail(corrupt(at, "a Java class with %d fields", n))
		return
	}
	c.fields = make([]javaField, 0, min(n, r.rest()/3)) // a field takes three bytes or more
	for range n {
		f := javaField{kind: r.u8(), name: r.text()}
		if f.kind == 'L' || f.kind == '[' {
			r.content(r.pos(), r.u8())
		}
		if r.err != nil {
			return
		}
		c.fields = append(c.fields, f)
	}
}

// annotation skips what a class adds by code of its own.
func (r *javaReader) annotation() {
	for r.err == nil {
		at := r.pos()
		switch tag := r.u8(); tag {
		case tcEndBlockData:
			return
		case tcBlockData:
			r.bytes(int(r.u8()))
		case tcBlockDataLong:
			r.bytes(r.length(1))
		default:
			r.content(at, tag)
		}
	}
}

func (r *javaReader) object() any {
	at := r.pos()
	c := r.class()
	if c == nil {
		r.fail(corrupt(at, "a Java object without a class"))
		return nil
	}
	o := &javaObject{class: c.name}
	r.remember(o)
	r.values(o, c, 0)
	return o
}

// values reads the fields of an object, those of its superclasses first.
func (r *javaReader) values(o *javaObject, c *javaClass, depth int) {
	if c == nil || r.err != nil {
		return
	}
	if depth > maxJavaDepth {
		r.fail(corrupt(r.pos(), "a Java class has more than %d superclasses", maxJavaDepth))
		return
	}
	r.values(o, c.super, depth+1)
	if c.flags&scExternalizable != 0 {
		if c.flags&scBlockData == 0 {
			r.fail(corrupt(r.pos(), "objects of class %s cannot be read without their class", c.name))
		}
		r.annotation()
		return
	}
	for _, f := range c.fields {
		v := r.value(f.kind)
		if r.err != nil {
			r.failedIn(f.name)
			return
		}
		if _, known := propertyFields[f.name]; known {
			if o.fields == nil {
				o.fields = make(map[string]any)
			}
			o.fields[f.name] = v
		}
	}
	if c.flags&scWriteMethod != 0 {
		r.annotation()
	}
}

func (r *javaReader) value(kind byte) any {
	switch kind {
	case 'L', '[':
		return r.content(r.pos(), r.u8())
	case 'Z':
		return r.u8() != 0
	}
	size := javaSize(kind)
	if size == 0 {
		r.fail(corrupt(r.pos(), "there is no Java type %q", kind))
	}
	r.bytes(size)
	return javaOther{}
}

// javaSize is the number of bytes of a primitive type, 0 for others.
func javaSize(kind byte) int {
	switch kind {
	case 'B', 'Z':
		return 1
	case 'C', 'S':
		return 2
	case 'F', 'I':
		return 4
	case 'D', 'J':
		return 8
	}
	return 0
}

func (r *javaReader) array() any {
	at := r.pos()
	c := r.class()
	if c == nil || len(c.name) < 2 || c.name[0] != '[' {
		r.fail(corrupt(at, "a Java array without a class"))
		return nil
	}
	r.remember(javaOther{})
	if size := javaSize(c.name[1]); size > 0 {
		r.bytes(size * r.length(size))
		return javaOther{}
	}
	for range r.length(1) {
		r.content(r.pos(), r.u8())
		if r.err != nil {
			break
		}
	}
	return javaOther{}
}

func (r *javaReader) enum() any {
	r.class()
	index := r.remember(nil)
	at := r.pos()
	name, ok := r.content(at, r.u8()).(string)
	if !ok {
		r.fail(corrupt(at, "a Java enum constant without a name"))
		return nil
	}
	r.handles[index] = javaEnum{name}
	return javaEnum{name}
}
