package fstest

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// watchLeaks fails t if there are more goroutines or open descriptors after all of its clean-up than there are now.
func watchLeaks(t testing.TB, wait time.Duration) {
	t.Helper()
	startPoller()
	goroutines, descriptors := countGoroutines(), countDescriptors()
	t.Cleanup(func() {
		if t.Failed() {
			return // a rule that stopped half-way has left its streams open
		}
		for deadline := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
			moreGoroutines := runtime.NumGoroutine() - goroutines
			moreDescriptors := countDescriptors() - descriptors
			if moreGoroutines <= 0 && moreDescriptors <= 0 {
				return
			}
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<20)
				t.Errorf("leaked %d goroutines and %d descriptors; all goroutines:\n%s",
					max(0, moreGoroutines), max(0, moreDescriptors), stacks[:runtime.Stack(stacks, true)])
				return
			}
		}
	})
}

// startPoller has the runtime open the descriptors of its network poller, which it does with the first timer.
var startPoller = sync.OnceFunc(func() { time.Sleep(time.Microsecond) })

// countGoroutines counts when the number stands still: goroutines that are about to end must not hide new ones.
func countGoroutines() int {
	const still, patience = 20, 10_000
	count := runtime.NumGoroutine()
	for i, same := 0, 0; same < still && i < patience; i++ {
		runtime.Gosched()
		now := runtime.NumGoroutine()
		if same++; now != count {
			count, same = now, 0
		}
	}
	return count
}

// countDescriptors returns 0 where the system does not tell.
func countDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
