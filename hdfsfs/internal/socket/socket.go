package socket

// MaxSlices is how many slices one call reads into or writes.
const MaxSlices = 16
