package faultfs_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// A fault sweep fails the first call, then the second, and so on, until a run meets no fault.
func ExampleNth() {
	ctx := context.Background()
	write := func(f core.FileSystem) error {
		w, err := f.Create(ctx, "/file", core.CreateOptions{})
		if err != nil {
			return err
		}
		if _, err := w.Write([]byte("12345")); err != nil {
			return errors.Join(err, w.Abort())
		}
		if err := w.Close(); err != nil {
			return errors.Join(err, w.Abort())
		}
		return nil
	}
	for i := 0; ; i++ {
		disk := memfs.New(memfs.Options{})
		f := faultfs.Wrap(disk, faultfs.Nth(i, faultfs.Fault{Err: core.ErrNoSpace}))
		err := write(f)
		fmt.Println(err, disk.Tree())
		if f.Count() <= i {
			break
		}
	}
	// Output:
	// create /file: no space left []
	// write /file: no space left []
	// close /file: no space left []
	// <nil> [/file 5]
}
