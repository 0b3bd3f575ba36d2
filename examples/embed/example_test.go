// Package embed_test is the smallest job that embeds the library: one process, one task, a local disk.
package embed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/localfs"
)

func Example() {
	dir := os.Getenv("VISITS_DIR") // a directory that is there, and survives the process
	fsys, err := localfs.Open(dir, localfs.Options{})
	check(err)
	storage, err := core.NewStorage(fsys, fsys.Base(), core.JobIDOf("visits"), core.Options{})
	check(err)

	visits := 0 // the state of the only task
	task := coordinator.Task{Operator: coordinator.OperatorIDOf("counter")}
	var job *coordinator.Coordinator
	job, err = coordinator.New(coordinator.Options{
		Storage:   storage,
		Operators: []coordinator.Operator{{UID: "counter"}},
		Send: func(ctx context.Context, t coordinator.Trigger) error {
			bytes, err := t.WriteState(ctx, storage, core.Exclusive, func(w io.Writer) error { return json.NewEncoder(w).Encode(visits) })
			if err != nil {
				return err
			}
			named := []metadata.NamedState{{Name: "visits", Offsets: []int64{0}}}
			return job.Acknowledge(ctx, t.Ack(task, &metadata.SubtaskState{ManagedOperator: metadata.NewOperatorHandle(named, bytes)}))
		},
	})
	check(err)

	ctx := context.Background()
	restored, err := job.Start(ctx) // from here on, an earlier process of the job can do no harm
	check(err)
	parts, err := restored.OperatorParts(task.Operator, 1, task.Subtask)
	check(err)
	for _, part := range parts {
		state, err := restored.Open(ctx, part.Delegate)
		check(err)
		check(json.NewDecoder(state).Decode(&visits))
		check(state.Close())
	}

	visits++
	committed, err := job.TriggerCheckpoint(ctx) // or `go job.Run(ctx)` with Options.Interval
	check(err)
	fmt.Println("visit", visits, "is durable in checkpoint", committed.ID)
	check(job.Close(ctx))
	check(fsys.Close())

	// Output: visit 1 is durable in checkpoint 1
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
