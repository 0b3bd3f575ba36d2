package fsurl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/hdfsckpt/hdfsckpt/fsurl"
)

func ExampleOpener() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// checkpoints
	// same file system: true
}

func run() (err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	opener, err := fsurl.NewOpener(fsurl.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opener.Close()) }()

	first, name, err := opener.Open(ctx, "file://"+dir+"/checkpoints")
	if err != nil {
		return err
	}
	if err := first.MkdirAll(ctx, name); err != nil {
		return err
	}
	fmt.Println(filepath.Base(name))

	second, _, err := opener.Open(ctx, dir+"/savepoints")
	if err != nil {
		return err
	}
	fmt.Println("same file system:", first == second)
	return nil
}
