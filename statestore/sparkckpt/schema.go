package sparkckpt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

// A schema file says what the columns of keys and values are, as Spark's JSON of a StructType. UTF is Java's writeUTF, a
// two-byte length and modified UTF-8; S is an int32 number of chunks and as many UTF, since one holds 65535 bytes at most.
//
//	version 1      UTF "v1", UTF key, UTF value
//	version 2      UTF "v2", S key, S value
//	version 3      UTF "v3", int32 families, then of each
//	               UTF name, int16 key schema id, S key, int16 value schema id, S value, S key encoder, S user key

// Schema is that of a column family; versions 1 and 2 have one, without name.
type Schema struct {
	Family     string
	Key, Value string
	// KeyEncoder and UserKey are "" below version 3.
	KeyEncoder, UserKey string
}

// ParseSchemas parses a schema file. Damage is core.ErrCorrupt, another version core.ErrUnsupportedVersion.
func ParseSchemas(data []byte) (version int, schemas []Schema, err error) {
	r := &schemaReader{left: data}
	name := r.utf()
	switch {
	case r.bad:
		return 0, nil, fmt.Errorf("%w: a schema file of %d bytes", core.ErrCorrupt, len(data))
	case name == "v1":
		version, schemas = 1, []Schema{{Key: r.utf(), Value: r.utf()}}
	case name == "v2":
		version, schemas = 2, []Schema{{Key: r.chunks(), Value: r.chunks()}}
	case name == "v3":
		version = 3
		for range r.count(minFamily) {
			s := Schema{Family: r.utf()}
			r.take(2)
			s.Key = r.chunks()
			r.take(2)
			s.Value, s.KeyEncoder, s.UserKey = r.chunks(), r.chunks(), r.chunks()
			schemas = append(schemas, s)
		}
	default:
		return 0, nil, fmt.Errorf("%w: schema file %q", core.ErrUnsupportedVersion, name)
	}
	if r.bad {
		return 0, nil, fmt.Errorf("%w: a schema file of version %d that ends too early", core.ErrCorrupt, version)
	}
	return version, schemas, nil
}

// minFamily is the least that a column family takes: a name, two ids, four empty texts.
const minFamily = 2 + 2*2 + 4*4

// schemaReader reads what Java's DataOutputStream wrote; after a failure everything is empty.
type schemaReader struct {
	left []byte
	bad  bool
}

func (r *schemaReader) take(n int) []byte {
	if r.bad || n > len(r.left) {
		r.bad = true
		return nil
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

// count reads a number of things that take at least size bytes each.
func (r *schemaReader) count(size int) int {
	b := r.take(4)
	if b == nil {
		return 0
	}
	n := int(int32(binary.BigEndian.Uint32(b)))
	if n < 0 || n > len(r.left)/size {
		r.bad = true
		return 0
	}
	return n
}

func (r *schemaReader) utf() string {
	b := r.take(2)
	if b == nil {
		return ""
	}
	text, ok := decodeModifiedUTF8(r.take(int(binary.BigEndian.Uint16(b))))
	r.bad = r.bad || !ok
	return text
}

func (r *schemaReader) chunks() string {
	var b strings.Builder
	for range r.count(2) {
		b.WriteString(r.utf())
	}
	return b.String()
}

// decodeModifiedUTF8 decodes what Java makes of its 16-bit characters: each by itself, NUL in two bytes.
func decodeModifiedUTF8(b []byte) (string, bool) {
	var units []uint16
	for len(b) > 0 {
		size, unit := 1, uint16(b[0])
		switch {
		case b[0] < 0x80:
		case b[0]>>5 == 0b110 && len(b) >= 2:
			size, unit = 2, uint16(b[0]&0x1f)<<6|uint16(b[1]&0x3f)
		case b[0]>>4 == 0b1110 && len(b) >= 3:
			size, unit = 3, uint16(b[0]&0x0f)<<12|uint16(b[1]&0x3f)<<6|uint16(b[2]&0x3f)
		default:
			return "", false
		}
		for _, more := range b[1:size] {
			if more>>6 != 0b10 {
				return "", false
			}
		}
		units, b = append(units, unit), b[size:]
	}
	return string(utf16.Decode(units)), true
}

// Schemas reads the schemas of a store, of which partition 0 holds those of versions 1 and 2. The newest file of version 3 is
// taken. Without a file there are none.
func (c *Checkpoint) Schemas(ctx context.Context, id statestore.StoreID) (version int, schemas []Schema, err error) {
	name, err := c.schemaFile(ctx, id)
	if name == "" || err != nil {
		return 0, nil, err
	}
	data, err := readText(ctx, c.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	version, schemas, err = ParseSchemas(data)
	return version, schemas, core.PathError("read", name, err)
}

func (c *Checkpoint) schemaFile(ctx context.Context, id statestore.StoreID) (string, error) {
	operator := path.Join(c.StateRoot(), strconv.FormatInt(id.Operator, 10))
	dir := path.Join(operator, schemaDir, id.Name)
	newest, batch := "", int64(-1)
	for info, err := range c.fsys.List(ctx, dir) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return "", err
		}
		digits, _, found := strings.Cut(info.Name, "_")
		if n, ok := parseNumber(digits); ok && found && n > batch && info.IsRegular() {
			newest, batch = path.Join(dir, info.Name), n
		}
	}
	if newest != "" {
		return newest, nil
	}
	first, err := statestore.StoreDir(c.StateRoot(), id.Operator, 0, id.Name)
	if err != nil {
		return "", core.PathError("open", c.StateRoot(), err)
	}
	return path.Join(first, metadataDir, "schema"), nil
}
