package demo

import (
	"fmt"
	"io"
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
	aborted     int
	jobKills    int
	workerKills int
	restores    int
	rescaled    int
	// disturbances are the commands that have ended without an error.
	disturbances int
	bytes        int64
}

func (t *tally) note(event job.Event) {
	switch event.Event {
	case "committed":
		t.checkpoints++
		t.bytes += event.Bytes
	case "aborted":
		t.aborted++
	case "restored":
		t.restores++
	}
}

func (t *tally) print(w io.Writer, position int64, took time.Duration) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.Debug)
	fmt.Fprintln(table, "checkpoints\taborted\tjob kills\tworker kills\trestores\trescaled\tstate written\tchunks\ttime\t")
	fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%d\t%d\t%.1f MiB\t%d\t%v\t\n", t.checkpoints, t.aborted, t.jobKills, t.workerKills,
		t.restores, t.rescaled, float64(t.bytes)/(1<<20), position, took.Round(100*time.Millisecond))
	_ = table.Flush() // the exit code tells, not the table
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
