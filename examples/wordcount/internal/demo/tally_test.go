package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/job"
)

func TestWhatFailsIsBlamedOnTheKillOrOnTheLastDisturbance(t *testing.T) {
	var (
		none    Disturbance
		node    = Disturbance{Command: []string{"kill", "dn1"}, Endured: true}
		master  = Disturbance{Command: []string{"restart", "nn"}}
		aborted = func(id int64, cause job.Cause) job.Event {
			return job.Event{Event: "aborted", ID: id, Cause: cause, Reason: "reason"}
		}
		failed = func(cause job.Cause) job.Event { return job.Event{Event: "failed", Cause: cause, Reason: "reason"} }
	)
	for _, tt := range []struct {
		name    string
		due     int // attempts that must fail since a worker was killed
		events  []job.Event
		of      Disturbance
		aborted int
		wrong   string // of the error; "" is none
	}{
		{"nothing", 0, nil, none, 0, ""},
		{"a worker that was killed", 1, []job.Event{aborted(7, job.OfProcess), failed(job.OfProcess), aborted(7, job.OfProcess)}, node, 1, ""},
		{"a worker that nobody has killed", 0, []job.Event{failed(job.OfProcess)}, node, 0, "failed after kill dn1: reason"},
		{"two workers, one of which was killed", 1, []job.Event{failed(job.OfProcess), failed(job.OfProcess)}, node, 0, "kill dn1"},
		{"a newer one", 0, []job.Event{aborted(7, job.OfSubsumed)}, node, 1, ""},
		{"a DataNode", 0, []job.Event{aborted(7, job.OfStorage)}, node, 1, "failed after kill dn1: reason"},
		{"an attempt for a DataNode while a worker's is due", 1, []job.Event{failed(job.OfStorage)}, node, 0, "kill dn1"},
		{"the NameNode", 0, []job.Event{aborted(7, job.OfStorage), failed(job.OfStorage)}, master, 1, ""},
		{"nothing at all", 0, []job.Event{aborted(7, job.OfStorage)}, none, 1, "failed after no disturbance"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tally{lossesDue: tt.due}
			for _, event := range tt.events {
				c.note(event, tt.of)
			}
			require.Len(t, c.aborted, tt.aborted)
			var out strings.Builder
			c.print(&out, 0, time.Second)
			if tt.wrong == "" {
				require.NoError(t, c.endured())
				require.Contains(t, out.String(), "must endure: 0\n")
				return
			}
			require.ErrorContains(t, c.endured(), tt.wrong)
			require.NotContains(t, out.String(), "must endure: 0\n")
		})
	}
}
