package localfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

// A file is written under a temporary name and published in one step: when Rename returns nil, it is complete and durable,
// and nobody has seen less.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err == nil {
		err = errors.Join(publish(dir), os.RemoveAll(dir))
	}
	if err != nil {
		log.Print(err)
	}
	// Output: state of chk-1
}

func publish(dir string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	base := filepath.Join(dir, "checkpoints")
	fsys, err := localfs.Open(base, localfs.Options{CreateBase: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fsys.Close()) }()

	temporary, final := filepath.Join(base, ".state.tmp"), filepath.Join(base, "state")
	w, err := fsys.Create(ctx, temporary, core.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Abort()) }() // removes the file, unless Close has succeeded
	if _, err := io.WriteString(w, "state of chk-1"); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := fsys.Rename(ctx, temporary, final, core.RenameNoReplace); err != nil {
		return err
	}

	r, err := fsys.Open(ctx, final)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	fmt.Println(string(data))
	return nil
}
