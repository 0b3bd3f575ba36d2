//go:build race

package core_test

// raceDetector: allocations are counted differently under the race detector, which makes sync.Pool forget at random.
const raceDetector = true
