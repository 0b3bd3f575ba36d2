package memfs_test

import (
	"context"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// A crash sweep clones the file system after every step of a run and looks at what a restart would find.
func ExampleFS_OnMutation() {
	ctx := context.Background()
	f := memfs.New(memfs.Options{})
	f.OnMutation(func(m memfs.Mutation) {
		fmt.Println(m, f.CrashClone(memfs.CrashConfig{}).Tree())
	})
	w, err := f.Create(ctx, "/temporary", core.CreateOptions{})
	if err != nil {
		panic(err)
	}
	if _, err := w.Write([]byte("12345")); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	if err := f.Rename(ctx, "/temporary", "/final", core.RenameNoReplace); err != nil {
		panic(err)
	}
	// Output:
	// #0 create /temporary: applied []
	// #1 write /temporary: applied []
	// #2 close /temporary: data durable []
	// #3 close /temporary: entry durable [/temporary 5]
	// #4 rename /temporary to /final: applied [/temporary 5]
	// #5 rename /temporary to /final: entry durable [/final 5]
}
