package chunksum

import "golang.org/x/sys/cpu"

// instruction: the processor has one for CRC32C.
var instruction = cpu.X86.HasSSE42

// castagnoliThree sums up three chunks, one behind the other, of which the first begins at data. chunk is a multiple of 8, and
// positive.
//
//go:noescape
func castagnoliThree(data *byte, chunk int, sums *[abreast]uint32)
