package job

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/fsurl"
)

// Place makes a directory, which is a URL or a path, and returns the name under which the job and its workers find it: a path
// becomes absolute and free of symbolic links.
func Place(ctx context.Context, dir string) (base string, err error) {
	if scheme, _, found := strings.Cut(dir, ":"); found && !strings.Contains(scheme, "/") {
		fsys, name, err := fsurl.Open(ctx, dir, fsurl.Options{})
		if err != nil {
			return "", err
		}
		return dir, errors.Join(fsys.MkdirAll(ctx, name), fsys.Close())
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
