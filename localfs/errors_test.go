package localfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestErrnosMeanWhatTheContractSays(t *testing.T) {
	for errno, want := range map[syscall.Errno]error{
		syscall.ENOENT:       fs.ErrNotExist,
		syscall.EEXIST:       fs.ErrExist,
		syscall.ENOTEMPTY:    fs.ErrExist,
		syscall.EACCES:       fs.ErrPermission,
		syscall.EPERM:        fs.ErrPermission,
		syscall.EROFS:        fs.ErrPermission,
		syscall.ENOTDIR:      fs.ErrInvalid,
		syscall.EISDIR:       fs.ErrInvalid,
		syscall.EINVAL:       fs.ErrInvalid,
		syscall.ENAMETOOLONG: fs.ErrInvalid,
		syscall.ELOOP:        fs.ErrInvalid,
		syscall.ENXIO:        fs.ErrInvalid,
		syscall.ENOSPC:       core.ErrNoSpace,
		syscall.EDQUOT:       core.ErrNoSpace,
		syscall.EMLINK:       core.ErrQuota,
		syscall.ESTALE:       core.ErrUnavailable,
		syscall.ETIMEDOUT:    core.ErrUnavailable,
		syscall.EHOSTDOWN:    core.ErrUnavailable,
		syscall.ENOTCONN:     core.ErrUnavailable,
		syscall.EAGAIN:       core.ErrUnavailable,
		syscall.EMFILE:       core.ErrUnavailable,
		syscall.ENFILE:       core.ErrUnavailable,
		syscall.ENOTSUP:      errors.ErrUnsupported,
		syscall.EIO:          nil,
		syscall.EXDEV:        nil,
		syscall.EBUSY:        nil,
	} {
		err := pathError("op", "/name", fmt.Errorf("more: %w", errno))
		require.ErrorIs(t, err, errno)
		require.Equal(t, "op /name: more: "+errno.Error(), err.Error())
		for _, sentinel := range []error{
			fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed, errors.ErrUnsupported,
			core.ErrNoSpace, core.ErrQuota, core.ErrUnavailable, core.ErrCorrupt,
		} {
			require.Equal(t, want != nil && errors.Is(want, sentinel), errors.Is(err, sentinel), "%v is %v", errno, sentinel)
		}
	}
	require.NoError(t, pathError("op", "/name", nil))
}

func TestErrnosOfEachCallArriveWithNameAndMeaning(t *testing.T) {
	ctx := context.Background()
	type call func(f *FS, top string) error
	create := func(f *FS, top string) error {
		_, err := f.Create(ctx, join(top, "name"), core.CreateOptions{})
		return err
	}
	rename := func(f *FS, top string) error {
		return f.Rename(ctx, join(top, "name"), join(top, "new"), core.RenameReplace)
	}
	for _, c := range []struct {
		op    string
		errno syscall.Errno
		call  call
		want  error
	}{
		{"create", syscall.ENOSPC, create, core.ErrNoSpace},
		{"create", syscall.EDQUOT, create, core.ErrNoSpace},
		{"create", syscall.EROFS, create, fs.ErrPermission},
		{"create", syscall.EMFILE, create, core.ErrUnavailable},
		{"open", syscall.ESTALE, create, core.ErrUnavailable},
		{"mkdir", syscall.EMLINK, func(f *FS, top string) error { return f.MkdirAll(ctx, join(top, "name", "a")) }, core.ErrQuota},
		{"open", syscall.ENOTDIR, func(f *FS, top string) error { return f.MkdirAll(ctx, join(top, "name")) }, fs.ErrInvalid},
		{"open", syscall.ENOTDIR, func(f *FS, top string) error {
			_, err := f.Stat(ctx, join(top, "name"))
			return err
		}, fs.ErrNotExist},
		{"open", syscall.ENOTDIR, func(f *FS, top string) error {
			_, err := f.Open(ctx, join(top, "name"))
			return err
		}, fs.ErrNotExist},
		{"open", syscall.ENOTDIR, func(f *FS, top string) error { return f.Remove(ctx, join(top, "name")) }, fs.ErrNotExist},
		{"open", syscall.ENOTDIR, func(f *FS, top string) error { return f.RemoveAll(ctx, join(top, "name")) }, nil},
		{"open", syscall.ENOTDIR, create, fs.ErrInvalid},
		{"rename", syscall.EXDEV, rename, syscall.EXDEV},
		{"rename", syscall.EISDIR, rename, fs.ErrExist},
		{"unlink", syscall.EACCES, func(f *FS, top string) error { return f.Remove(ctx, join(top, "name")) }, fs.ErrPermission},
		{"rmdir", syscall.ENOTEMPTY, func(f *FS, top string) error { return f.Remove(ctx, join(top, "name")) }, fs.ErrExist},
	} {
		t.Run(fmt.Sprint(c.op, " ", c.errno), func(t *testing.T) {
			f, sys, top := tapped(t, Options{})
			switch c.op {
			case "rmdir":
				require.NoError(t, os.Mkdir(join(top, "name"), 0o700))
			case "rename", "unlink":
				require.NoError(t, os.WriteFile(join(top, "name"), nil, 0o600))
			}
			sys.hook = func(e event) (bool, error) { return e.op == c.op, c.errno }
			err := c.call(f, top)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			var pathErr *fs.PathError
			require.ErrorAs(t, err, &pathErr)
			require.True(t, strings.HasPrefix(pathErr.Path, join(top, "name")), pathErr.Path)
			if c.errno == syscall.EXDEV {
				require.ErrorContains(t, err, join(top, "new"), "an error with both paths")
				require.Equal(t, []string{"name"}, children(t, top), "and never a copy")
			}
		})
	}
}
