package demo

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/job"
)

// minCheckpoints is how many checkpoints a demo must have taken to show anything.
const minCheckpoints = 20

// tally counts what happened.
type tally struct {
	lives       int
	checkpoints int
	aborted     map[int64]job.Cause // by id; one may be reported again
	casualties  []casualty
	// lossesDue is how many attempts are still to fail since a worker was killed.
	lossesDue   int
	jobKills    int
	workerKills int
	restores    int
	rescaled    int
	// disturbances are the commands that have ended without an error.
	disturbances int
	bytes        int64
}

// casualty is a checkpoint, or an attempt of the job with what it was about to write, that the storage has failed.
type casualty struct {
	of     Disturbance // the last one that was begun; the zero value before the first
	reason string
}

// note counts an event. Disturbed is the last disturbance that was begun.
func (t *tally) note(event job.Event, disturbed Disturbance) {
	switch event.Event {
	case "committed":
		t.checkpoints++
		t.bytes += event.Bytes
	case "aborted":
		if t.aborted == nil {
			t.aborted = map[int64]job.Cause{}
		}
		if t.aborted[event.ID] != "" {
			return
		}
		t.aborted[event.ID] = event.Cause
		if event.Cause == job.OfStorage {
			t.casualties = append(t.casualties, casualty{disturbed, event.Reason})
		}
	case "failed":
		if event.Cause == job.OfProcess && t.lossesDue > 0 {
			t.lossesDue--
			return
		}
		t.casualties = append(t.casualties, casualty{disturbed, event.Reason}) // or nobody has killed the worker that was lost
	case "restored":
		t.restores++
	}
}

func (t *tally) print(w io.Writer, position int64, took time.Duration) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.Debug)
	fmt.Fprintln(table, "checkpoints\taborted\tjob kills\tworker kills\trestores\trescaled\tstate written\tchunks\ttime\t")
	fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%d\t%d\t%.1f MiB\t%d\t%v\t\n", t.checkpoints, len(t.aborted), t.jobKills, t.workerKills,
		t.restores, t.rescaled, float64(t.bytes)/(1<<20), position, took.Round(100*time.Millisecond))
	_ = table.Flush() // the exit code tells, not the table
	causes := map[job.Cause]int{}
	for _, cause := range t.aborted {
		causes[cause]++
	}
	fmt.Fprintf(w, "aborted: %d with a process that was killed, %d since a newer one was faster, %d by the storage\n",
		causes[job.OfProcess], causes[job.OfSubsumed], causes[job.OfStorage])
	for _, c := range t.casualties {
		fmt.Fprintf(w, "failed after %s: %s\n", c.of, c.reason)
	}
	fmt.Fprintf(w, "checkpoints and attempts that failed for what they must endure: %d\n", len(t.mustNot()))
}

// mustNot are the casualties of what must be endured, and those of nothing at all.
func (t *tally) mustNot() []casualty {
	return slices.DeleteFunc(slices.Clone(t.casualties), func(c casualty) bool { return c.of.Command != nil && !c.of.Endured })
}

// endured tells if something failed that must not.
func (t *tally) endured() error {
	var failures []error
	for _, c := range t.mustNot() {
		failures = append(failures, fmt.Errorf("a checkpoint failed after %s: %s", c.of, c.reason))
	}
	return errors.Join(failures...)
}

// enough tells if too little happened for the result to mean something.
func (t *tally) enough(kills, disturbances int) error {
	switch {
	case t.disturbances < disturbances:
		return fmt.Errorf("only %d of %d disturbances took place; give more passes", t.disturbances, disturbances)
	case t.jobKills+t.workerKills < kills:
		return fmt.Errorf("only %d of %d kills took place; give more passes", t.jobKills+t.workerKills, kills)
	case t.checkpoints < minCheckpoints:
		return fmt.Errorf("only %d checkpoints were taken, at least %d are wanted; give more passes", t.checkpoints, minCheckpoints)
	case t.restores == 0:
		return fmt.Errorf("nothing was restored")
	}
	return nil
}
