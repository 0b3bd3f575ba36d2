package localfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// publishAtomically is the life of an AtomicFile.
func publishAtomically(f *FS, top string) error {
	file, err := core.CreateAtomic(context.Background(), f, core.AtomicOptions{Temp: join(top, "temp"), Final: join(top, "dir", "final")})
	if err != nil {
		return err
	}
	if _, err := file.Write([]byte("content")); err != nil {
		return errors.Join(err, file.Abort())
	}
	return errors.Join(file.Commit(), file.Abort())
}

// TestAtomicFileByLinkAndUnlinkTellsTheTruth fails every single call of the operating system, with and without its effect, and
// as NFS does that repeats a call whose answer was lost.
func TestAtomicFileByLinkAndUnlinkTellsTheTruth(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ETIMEDOUT, syscall.EEXIST, syscall.ENOENT} {
			t.Run(fmt.Sprintf("%v/after %v", errno, after), func(t *testing.T) {
				for i := 0; ; i++ {
					f, sys, top := tapped(t, Options{})
					real := oldKernel{kernel{}}
					nth := &failNth{system: real, fail: i, after: after, errno: errno}
					sys.system = nth
					require.NoError(t, os.Mkdir(join(top, "dir"), 0o700))
					err := publishAtomically(f, top)
					got, readErr := os.ReadFile(join(top, "dir", "final"))
					switch {
					case err == nil:
						require.NoError(t, readErr, "call %d: %s", i, nth.failed)
						require.Equal(t, "content", string(got))
					case !strings.Contains(err.Error(), "outcome unknown"):
						require.ErrorIs(t, readErr, os.ErrNotExist, "call %d: %s: %v", i, nth.failed, err)
					}
					if nth.failed == "fsync" && after && nth.linked {
						require.Error(t, err, "what an fsync has failed to write no later one need write")
					}
					if nth.failed == "link" && after && errno == syscall.EEXIST ||
						(nth.failed == "rename" || nth.failed == "unlink") && after && errno == syscall.ENOENT {
						require.NoError(t, err, "only the answer was lost")
					}
					if nth.failed == "" {
						require.NoError(t, err)
						require.Greater(t, i, 5)
						return
					}
				}
			})
		}
	}
}

// failNth fails the call number fail of those that change something, before or after it has its effect.
type failNth struct {
	system
	fail, calls int
	after       bool
	errno       syscall.Errno
	failed      string
	linked      bool
}

func (s *failNth) do(op string, real func() error) error {
	s.calls++
	if s.calls != s.fail+1 {
		return real()
	}
	s.failed = op
	if s.after {
		_ = real()
	}
	return s.errno
}

func (s *failNth) link(olddir *os.File, oldleaf string, newdir *os.File, newleaf string) error {
	return s.do("link", func() error {
		s.linked = true
		return s.system.link(olddir, oldleaf, newdir, newleaf)
	})
}

func (s *failNth) unlink(dir *os.File, leaf string) error {
	return s.do("unlink", func() error { return s.system.unlink(dir, leaf) })
}

func (s *failNth) fsync(f *os.File) error {
	return s.do("fsync", func() error { return s.system.fsync(f) })
}

func (s *failNth) lstat(dir *os.File, leaf string) (e entry, err error) {
	err = s.do("lstat", func() error {
		e, err = s.system.lstat(dir, leaf)
		return err
	})
	return e, err
}
