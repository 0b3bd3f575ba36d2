package core

import "context"

// Checksummer is what a [FileSystem] may implement besides: one that keeps checksums of its files can tell them without the
// bytes going over the network. HDFS can (its composite CRC); a local disk cannot.
type Checksummer interface {
	// FileCRC32C returns the CRC32C (Castagnoli) of all bytes of a file, made from the checksums that the storage keeps, and the
	// length that it is of. It is errors.ErrUnsupported if that of this file cannot be told, for instance because the storage
	// keeps sums of another kind for it. Other errors are as those of FileSystem.Open. It is safe for concurrent use.
	FileCRC32C(ctx context.Context, name string) (sum uint32, size int64, err error)
}

// Whole returns the CRC32C of all of a file of size bytes, whose chunks have these sums. They must fit the size: see Validate.
func (c *Checksums) Whole(size int64) uint32 {
	whole := uint32(0)
	full := crcShift(int64(c.ChunkSize))
	for i, sum := range c.Sums {
		shift := full
		if rest := size - int64(i)*int64(c.ChunkSize); rest < int64(c.ChunkSize) {
			shift = crcShift(rest)
		}
		whole = crcMultiply(shift, whole) ^ sum
	}
	return whole
}

// castagnoliReflected is the polynomial, with the coefficient of the highest power in the lowest bit.
const castagnoliReflected = 0x82f63b78

// crcMultiply multiplies two polynomials over GF(2) modulo that of Castagnoli; 1 is the highest bit.
func crcMultiply(a, b uint32) uint32 {
	product := uint32(0)
	for mask := uint32(1) << 31; mask != 0; mask >>= 1 {
		if a&mask != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ castagnoliReflected
		} else {
			b >>= 1
		}
	}
	return product
}

// crcShift is x to the power of 8n: the sum of A followed by n bytes B is that of A times this, plus that of B.
func crcShift(n int64) uint32 {
	result, power := uint32(1)<<31, uint32(1)<<30 // 1 and x
	for range 3 {
		power = crcMultiply(power, power) // x to the power of 8
	}
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = crcMultiply(result, power)
		}
		power = crcMultiply(power, power)
	}
	return result
}
