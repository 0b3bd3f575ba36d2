package wire

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxUnchecked is the length up to which whatever is decoded is small.
const maxUnchecked = 64 << 10

// UnmarshalLarge is [Unmarshal] for messages that may be long. An element of a list takes some hundred bytes when it is decoded, and
// two, if it is empty, before: so that a peer cannot make of a long message one that is a hundred times as long, elements
// without their required fields are found before anything is decoded.
func UnmarshalLarge(b []byte, m proto.Message) error {
	if len(b) > maxUnchecked {
		if err := checkDensity(b, m.ProtoReflect().Descriptor()); err != nil {
			return err
		}
	}
	return Unmarshal(b, m)
}

// checkDensity refuses messages within b that are shorter than their required fields.
func checkDensity(b []byte, d protoreflect.MessageDescriptor) error {
	fields := d.Fields()
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return malformed("%s", d.Name())
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return malformed("field %d of %s", number, d.Name())
		}
		if f := fields.ByNumber(number); f != nil && f.Message() != nil && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			if len(value) < shortest(f.Message()) {
				return malformed("%s without required fields", f.Message().Name())
			}
			if err := checkDensity(value, f.Message()); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}

// lengths caches what shortest has found, by descriptor.
var lengths sync.Map

// shortest is the least length of a message that has its required fields.
func shortest(d protoreflect.MessageDescriptor) int {
	if known, ok := lengths.Load(d); ok {
		return known.(int) //nolint:forcetypeassert // nothing else is stored
	}
	length := 0
	for i := range d.RequiredNumbers().Len() {
		f := d.Fields().ByNumber(d.RequiredNumbers().Get(i))
		length += protowire.SizeTag(f.Number()) + 1 // a length or a short varint
		if f.Message() != nil {
			length += shortest(f.Message())
		}
	}
	lengths.Store(d, length)
	return length
}
