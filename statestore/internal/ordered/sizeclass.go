package ordered

import "slices"

// sizeClasses are the sizes of the objects of Go's allocator up to 32 KiB (runtime/sizeclasses.go). A test compares them
// with what the running release does; were they wrong, only accounting would be.
var sizeClasses = [...]int{
	8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480,
	512, 576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864,
	5376, 6144, 6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760,
	24576, 27264, 28672, 32768,
}

const (
	maxClass = 32768
	pageSize = 8192
	// headerFrom is the size above which an object with pointers has a header of 8 bytes.
	headerFrom = 512
)

// classOf returns the real size of an object of n bytes without pointers.
func classOf(n int) int {
	switch {
	case n == 0:
		return 0
	case n <= 256: // the classes are multiples of 8, then of 16
		if n <= 32 {
			return (n + 7) &^ 7
		}
		return (n + 15) &^ 15
	case n > maxClass:
		return (n + pageSize - 1) &^ (pageSize - 1)
	}
	i, _ := slices.BinarySearch(sizeClasses[:], n)
	return sizeClasses[i]
}

// refsBytes returns the real size of an array of n pointers.
func refsBytes(n int) int {
	size := 8 * n
	if size > headerFrom {
		size += 8
	}
	return classOf(size)
}
