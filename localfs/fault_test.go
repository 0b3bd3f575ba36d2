package localfs

import (
	"context"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// TestEveryFailureOfTheOperatingSystemSurfaces fails the first, the second, … call of an operation until it runs through,
// and requires after each failure that the operation has failed too, that nothing is left open and that nobody lies about
// what is there.
func TestEveryFailureOfTheOperatingSystemSurfaces(t *testing.T) {
	for _, c := range []struct {
		name string
		sys  system
		run  func(f *FS, top string) error
		// check looks at the directory after a failure; done tells whether the operation had its effect nevertheless.
		check func(t *testing.T, top string)
	}{
		{"Create, Write, Close, else Abort", kernel{}, createOrAbort, func(t *testing.T, top string) {
			require.NoFileExists(t, join(top, "new"))
		}},
		{"Open, Read", kernel{}, readAll, nil},
		{"Stat", kernel{}, func(f *FS, top string) error {
			_, err := f.Stat(context.Background(), join(top, "file"))
			return err
		}, nil},
		{"List", kernel{}, func(f *FS, top string) error {
			for _, err := range f.List(context.Background(), top) {
				if err != nil {
					return err
				}
			}
			return nil
		}, nil},
		{"MkdirAll", kernel{}, func(f *FS, top string) error {
			return f.MkdirAll(context.Background(), join(top, "x", "y"))
		}, nil},
		{"Rename", kernel{}, renameFile, requireOneName},
		{"Rename by link and unlink", oldKernel{kernel{}}, renameFile, nil}, // it may keep both names, and says so
		{"Rename that replaces", kernel{}, func(f *FS, top string) error {
			return f.Rename(context.Background(), join(top, "file"), join(top, "dir", "a"), core.RenameReplace)
		}, nil},
		{"Rename of a directory", kernel{}, func(f *FS, top string) error {
			return f.Rename(context.Background(), join(top, "dir"), join(top, "moved"), core.RenameNoReplace)
		}, nil},
		{"Remove", kernel{}, func(f *FS, top string) error {
			return f.Remove(context.Background(), join(top, "file"))
		}, nil},
		{"RemoveAll", kernel{}, func(f *FS, top string) error {
			return f.RemoveAll(context.Background(), join(top, "dir"))
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) { sweepFaults(t, c.sys, c.run, c.check) })
	}
}

func sweepFaults(t *testing.T, base system, run func(f *FS, top string) error, check func(t *testing.T, top string)) {
	t.Helper()
	for i := 0; ; i++ {
		withoutLeaks(t, func(t *testing.T) {
			f, sys, top := tapped(t, Options{})
			sys.system = base
			require.NoError(t, os.WriteFile(join(top, "file"), []byte("content"), 0o600))
			require.NoError(t, os.MkdirAll(join(top, "dir", "sub"), 0o700))
			require.NoError(t, os.WriteFile(join(top, "dir", "a"), nil, 0o600))
			calls := 0
			var failed *event
			sys.hook = func(e event) (bool, error) {
				if e.op == "close" && !isFile(top, e.path) {
					return false, nil // a directory was only read
				}
				if calls++; calls == i+1 {
					failed = &e
					return true, syscall.EPROTO
				}
				return false, nil
			}
			err := run(f, top)
			if failed == nil {
				require.NoError(t, err)
				i = -1
				return
			}
			require.ErrorIs(t, err, syscall.EPROTO, "call %d: %v", i, failed)
			if check != nil {
				check(t, top)
			}
		})
		if i < 0 || t.Failed() {
			return
		}
	}
}

func isFile(top, name string) bool { return name == join(top, "new") || name == join(top, "file") }

func createOrAbort(f *FS, top string) error {
	w, err := f.Create(context.Background(), join(top, "new"), core.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err = w.Write(make([]byte, writeoutStep+10)); err == nil {
		err = w.Sync()
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		_ = w.Abort() // only one call fails
	}
	return err
}

func readAll(f *FS, top string) error {
	r, err := f.Open(context.Background(), join(top, "file"))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	if closeErr := r.Close(); err == nil {
		err = closeErr
	}
	return err
}

func renameFile(f *FS, top string) error {
	return f.Rename(context.Background(), join(top, "file"), join(top, "dir", "new"), core.RenameNoReplace)
}

func requireOneName(t *testing.T, top string) {
	_, oldErr := os.Lstat(join(top, "file"))
	_, newErr := os.Lstat(join(top, "dir", "new"))
	require.NotEqual(t, oldErr == nil, newErr == nil)
}

// withoutLeaks requires that run, with its clean-up, leaves no goroutine and no descriptor behind.
func withoutLeaks(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors()
	t.Run("", run)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= goroutines && openDescriptors() <= descriptors {
			return
		}
		if time.Now().After(deadline) {
			require.LessOrEqual(t, openDescriptors(), descriptors, "leaked descriptors")
			require.LessOrEqual(t, runtime.NumGoroutine(), goroutines, "leaked goroutines")
			return
		}
	}
}

// openDescriptors returns 0 where the system does not tell.
func openDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
