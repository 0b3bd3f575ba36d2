package progress

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// output is a buffer that may be read while the meter writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func TestLineTellsRateAndWhenItWillBeDone(t *testing.T) {
	for _, tt := range []struct {
		facts Facts
		want  string
	}{
		{Facts{What: "object"}, "0/0 objects"},
		{Facts{What: "object", TotalItems: 10, Elapsed: time.Second}, "0/10 objects, 0/s"},
		{Facts{What: "object", Items: 5, TotalItems: 10, Elapsed: 2 * time.Second}, "5/10 objects, 2/s, ETA 2s"},
		{Facts{What: "object", Items: 10, TotalItems: 10, Elapsed: 2 * time.Second, Findings: 1}, "10/10 objects, 5/s, 1 finding"},
		{
			Facts{What: "object", Items: 1, TotalItems: 4, Bytes: 1 << 30, TotalBytes: 4 << 30, Elapsed: 10 * time.Second, Findings: 2},
			"1/4 objects, 1.0 GiB/4.0 GiB, 102.4 MiB/s, ETA 30s, 2 findings",
		},
		{Facts{What: "object", Bytes: 5, TotalBytes: 3, TotalItems: 1, Elapsed: time.Second}, "0/1 objects, 5 B/3 B, 5 B/s"},
	} {
		require.Equal(t, tt.want, Line(tt.facts))
	}
}

func TestAMeterWritesLinesFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		m := Start(Options{W: &out, What: "object"})
		m.Expect(3, 0)
		require.Empty(t, out.String(), "nothing has been done yet")
		m.Done(1, 0)
		require.Equal(t, "1/3 objects\n", out.String())
		time.Sleep(2*lineInterval + time.Second)
		synctest.Wait()
		require.Equal(t, 3, strings.Count(out.String(), "\n"))
		m.Done(2, 0)
		m.Stop()
		require.True(t, strings.HasSuffix(out.String(), "3/3 objects, 0/s\n"), out.String())
	})
}

func TestAMeterRewritesItsLineOnATerminalAndRemovesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		m := Start(Options{W: &out, Terminal: true, What: "object"})
		m.Expect(1000, 0)
		m.Done(100, 0)
		time.Sleep(terminalInterval + time.Millisecond)
		synctest.Wait()
		m.Stop()
		require.NotContains(t, out.String(), "\n")
		parts := strings.Split(out.String(), "\r")
		last := parts[len(parts)-2]
		require.Equal(t, strings.Repeat(" ", len("100/1000 objects, 499/s, ETA 1s")), last)
	})
}

func TestAMeterIsSafeForConcurrentUseAndMayBeMissing(t *testing.T) {
	var out output
	for _, m := range []*Meter{nil, Start(Options{W: &out, Interval: time.Microsecond})} {
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for range 100 {
					m.Expect(1, 1)
					m.Done(1, 1)
					m.Found()
				}
			})
		}
		workers.Wait()
		m.Stop()
	}
	require.Contains(t, out.String(), "800/800 s, 800 B/800 B")
	require.Contains(t, out.String(), "800 findings")
}
