package codec

import (
	"encoding/binary"
	"hash/crc32"
)

// Spark's row checksum (spark.sql.streaming.stateStore.rowChecksum.enabled) is the CRC32C of key and value as a
// little-endian integer before the value; a removal has that of the key before the key. Values in a changelog also have
// their length, little-endian too, between the two:
//
//	delta, snapshot   crc32c(key ‖ value) ‖ value            removal: crc32c(key) ‖ key
//	changelog         crc32c(key ‖ value) ‖ length ‖ value   delete:  crc32c(key) ‖ key
const checksumLen = 4

func rowSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

func appendRowSum(dst, key, value []byte) []byte {
	return binary.LittleEndian.AppendUint32(dst, rowSum(key, value))
}

// AppendChecksummedValue appends the value as a changelog, and RocksDB itself, hold it with row checksums.
func AppendChecksummedValue(dst, key, value []byte) []byte {
	dst = appendRowSum(dst, key, value)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

// checkRow splits off and verifies the checksum before the value.
func checkRow(key, stored []byte) ([]byte, bool) {
	if len(stored) < checksumLen {
		return nil, false
	}
	value := stored[checksumLen:]
	return value, rowSum(key, value) == binary.LittleEndian.Uint32(stored)
}

// checkChangelogRow is checkRow for a value with a length.
func checkChangelogRow(key, stored []byte) ([]byte, bool) {
	if len(stored) < checksumLen+4 {
		return nil, false
	}
	value := stored[checksumLen+4:]
	return value, int64(binary.LittleEndian.Uint32(stored[checksumLen:])) == int64(len(value)) &&
		rowSum(key, value) == binary.LittleEndian.Uint32(stored)
}
