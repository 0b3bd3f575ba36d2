package metadata

import (
	"crypto/md5" //nolint:gosec // the hash of name-based UUIDs, not a protection
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// nameUUID is Java's UUID.nameUUIDFromBytes: a UUID of version 3 without a name space.
func nameUUID(name []byte) string {
	sum := md5.Sum(name) //nolint:gosec // see the import
	sum[6] = sum[6]&0x0f | 0x30
	sum[8] = sum[8]&0x3f | 0x80
	return uuid.UUID(sum).String()
}

// flinkBackendID is the UUID that Flink makes of the text that is recorded as the id of a state backend: the same if it is one
// in the eyes of Java, else one that is made of the text.
func flinkBackendID(text string) string {
	if id, ok := parseJavaUUID(text); ok {
		return id.String()
	}
	return nameUUID([]byte(javaUTF8(text)))
}

// parseJavaUUID is Java's UUID.fromString: five hexadecimal numbers of which the upper digits may be missing, or may be too many and
// are then cut off.
func parseJavaUUID(text string) (uuid.UUID, bool) {
	const longest = 36
	parts := strings.Split(text, "-")
	if len(text) > longest || len(parts) != 5 {
		return uuid.UUID{}, false
	}
	var v [5]uint64
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 16, 64)
		if err != nil {
			return uuid.UUID{}, false
		}
		v[i] = uint64(n)
	}
	var id uuid.UUID
	binary.BigEndian.PutUint32(id[:], uint32(v[0]))
	binary.BigEndian.PutUint16(id[4:], uint16(v[1]))
	binary.BigEndian.PutUint16(id[6:], uint16(v[2]))
	binary.BigEndian.PutUint64(id[8:], v[3]<<48|v[4]&(1<<48-1))
	return id, true
}
