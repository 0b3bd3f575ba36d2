// Command visits is a job of one process and one task whose state, a number, survives it on whatever file system its URL names:
//
//	visits hdfs://ns1/user/me/visits
//
// A Kerberos login is taken from HDFSCKPT_PRINCIPAL and HDFSCKPT_KEYTAB, as by the command hdfsckpt, else from the credential cache.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/fsurl"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: visits URL")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "visits:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, out io.Writer) (err error) {
	fsys, dir, err := fsurl.Open(ctx, url, fsurl.Options{HDFS: hdfsfs.Options{Login: kerberos.Options{
		Principal: os.Getenv("HDFSCKPT_PRINCIPAL"), Keytab: os.Getenv("HDFSCKPT_KEYTAB"), // none: the credential cache
	}}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fsys.Close()) }()
	if err := fsys.MkdirAll(ctx, dir); err != nil {
		return err
	}
	storage, err := core.NewStorage(fsys, dir, core.JobIDOf("visits"), core.Options{})
	if err != nil {
		return err
	}
	return visit(ctx, storage, out)
}

// visit is one life of the job: it restores the number, counts itself, and makes the new number durable.
func visit(ctx context.Context, storage *core.Storage, out io.Writer) (err error) {
	visits := 0
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
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close(context.WithoutCancel(ctx))) }()
	restored, err := job.Start(ctx) // from here on, an earlier process of the job can do no harm
	if err != nil {
		return err
	}
	parts, err := restored.OperatorParts(task.Operator, 1, task.Subtask)
	if err != nil {
		return err
	}
	for _, part := range parts {
		state, err := restored.Open(ctx, part.Delegate)
		if err != nil {
			return err
		}
		if err := errors.Join(json.NewDecoder(state).Decode(&visits), state.Close()); err != nil {
			return err
		}
	}
	visits++
	committed, err := job.TriggerCheckpoint(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "visit %d is durable in %s\n", visits, committed.Pointer)
	return nil
}
