// Package job is the coordinating process of the word count: it starts workers, lets them count in step, takes checkpoints,
// and after the death of a worker restores all of them from the last one.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/coordinator"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/corpus"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/counts"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/worker"
	"github.com/hdfsckpt/hdfsckpt/fsurl"
)

const (
	// maxAttempts bounds how often the workers are restored one time after the other without a checkpoint in between.
	maxAttempts = 10
	// retryPause is between two attempts if the storage was not available: HDFS avoids a dead DataNode after some seconds.
	retryPause = 2 * time.Second
)

// Options of the job.
type Options struct {
	Base       string // directory of the checkpoint storage, a URL or a path
	Input      string // root of the source tree
	ChunkBytes int64
	Passes     int64
	Workers    int
	Interval   time.Duration
	Retain     int
	// Worker is the command line that starts a worker; the address of the job is appended.
	Worker []string
	// Events receives one JSON object a line.
	Events io.Writer
}

// Event is something that the job tells whoever runs it.
type Event struct {
	Event    string `json:"event"` // worker, restored, committed, aborted, failed, done
	ID       int64  `json:"id,omitempty"`
	Pointer  string `json:"pointer,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	Worker   int    `json:"worker,omitempty"`
	PID      int    `json:"pid,omitempty"`
	Position int64  `json:"position,omitempty"`
	End      int64  `json:"end,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Cause    Cause  `json:"cause,omitempty"` // of aborted and failed
}

// Cause is what a checkpoint or an attempt has failed for.
type Cause string

// The causes.
const (
	OfProcess  Cause = "process"  // the coordinator or a worker has ended
	OfSubsumed Cause = "subsumed" // a newer checkpoint was faster
	OfStorage  Cause = "storage"  // something could not be written or read
)

// causeOf tells why a checkpoint was aborted. What is not known to be something else is a failure of the storage.
func causeOf(a coordinator.Aborted) Cause {
	switch {
	case errors.Is(a.Reason, core.ErrUnavailable):
		return OfStorage
	case a.Repeated, errors.Is(a.Reason, errWorkerLost), errors.Is(a.Reason, fs.ErrClosed), errors.Is(a.Reason, context.Canceled):
		return OfProcess
	case errors.Is(a.Reason, coordinator.ErrSubsumed):
		return OfSubsumed
	}
	return OfStorage
}

// JobID is the id under which every run of the job finds its checkpoints.
func JobID() core.JobID { return core.JobIDOf("wordcount") }

// Job is one life of the coordinating process.
type Job struct {
	opts  Options
	input *corpus.Corpus
	end   int64 // chunks to count in all

	events sync.Mutex
	failed atomic.Int32 // attempts since the last commit
}

// errWorkerLost ends an attempt; the next one restores.
var errWorkerLost = errors.New("a worker was lost")

// Run counts the input and returns the pointer of the savepoint that holds the result.
func Run(ctx context.Context, opts Options) (string, error) {
	input, err := corpus.Scan(opts.Input, opts.ChunkBytes)
	if err != nil {
		return "", err
	}
	if opts.Base, err = Place(ctx, opts.Base); err != nil {
		return "", err
	}
	j := &Job{opts: opts, input: input, end: opts.Passes * input.Chunks()}
	for {
		pointer, err := j.attempt(ctx)
		unavailable := errors.Is(err, core.ErrUnavailable) // a DataNode has died, the NameNode starts again
		if !unavailable && !errors.Is(err, errWorkerLost) {
			return pointer, err
		}
		if j.failed.Add(1) == maxAttempts {
			return "", fmt.Errorf("gave up after %d attempts without a checkpoint: %w", maxAttempts, err)
		}
		cause := OfProcess
		if unavailable {
			cause = OfStorage
		}
		j.emit(Event{Event: "failed", Reason: err.Error(), Cause: cause})
		if unavailable {
			if err := pause(ctx); err != nil {
				return "", err
			}
		}
	}
}

// pause gives the storage time to recover.
func pause(ctx context.Context) error {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attempt restores the last checkpoint and works until the end or until a worker is lost.
func (j *Job) attempt(ctx context.Context) (pointer string, err error) {
	fsys, base, err := fsurl.Open(ctx, j.opts.Base, fsurl.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, fsys.Close()) }()
	storage, err := core.NewStorage(fsys, base, JobID(), core.Options{
		SavepointDir: core.Qualify(fsys.URI(), base+"/savepoints"),
		OwnerName:    fmt.Sprintf("pid %d", os.Getpid()),
	})
	if err != nil {
		return "", err
	}
	crew := newCrew(j.opts.Workers)
	c, err := coordinator.New(coordinator.Options{
		Storage:  storage,
		Interval: j.opts.Interval,
		Retain:   j.opts.Retain,
		Operators: []coordinator.Operator{{
			UID: worker.UID, Name: "counter", Parallelism: j.opts.Workers, MaxParallelism: counts.MaxParallelism,
		}},
		Send:        crew.trigger,
		OnCommitted: j.committed,
		OnAborted: func(_ context.Context, a coordinator.Aborted) {
			j.emit(Event{Event: "aborted", ID: a.ID, Reason: a.Reason.Error(), Cause: causeOf(a)})
		},
		TolerableFailures: coordinator.UnlimitedFailures,
	})
	if err != nil {
		return "", err
	}
	restored, err := c.Start(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	start, err := j.startingPoint(ctx, storage, restored)
	if err != nil {
		return "", err
	}
	return j.work(ctx, c, crew, start)
}

// committed tells of a commit. It may come again after a restart.
func (j *Job) committed(_ context.Context, c coordinator.Committed) error {
	if !c.Repeated {
		j.failed.Store(0)
		j.emit(Event{Event: "committed", ID: c.ID, Pointer: c.Pointer, Bytes: c.StateSize})
	}
	return nil
}

func (j *Job) emit(event Event) {
	line, err := json.Marshal(event)
	if err != nil {
		return // an Event always marshals
	}
	j.events.Lock()
	defer j.events.Unlock()
	_, _ = j.opts.Events.Write(append(line, '\n')) // whoever listened is gone; the checkpoints matter more
}
