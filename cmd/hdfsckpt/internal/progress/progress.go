// Package progress shows how far a long operation is: on a terminal as one line that is rewritten, elsewhere as a line from
// time to time.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
)

const (
	terminalInterval = 200 * time.Millisecond
	lineInterval     = 10 * time.Second
)

// Options of a meter.
type Options struct {
	// W is where the progress goes.
	W io.Writer
	// Terminal: W is one, so that the line can be rewritten.
	Terminal bool
	// What is counted, such as "object".
	What string
	// Interval between two lines; 0 is a default that suits W.
	Interval time.Duration
	// Now is the clock; the default is time.Now.
	Now func() time.Time
}

// Meter counts what is done and shows it. A nil meter does nothing. It is safe for concurrent use; Stop must be called.
type Meter struct {
	opts  Options
	begin time.Time
	stop  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	facts Facts
	begun bool
	shown int // runes of the line on the terminal
}

// Facts are what a line of progress tells.
type Facts struct {
	What              string
	Items, TotalItems int
	Bytes, TotalBytes int64
	Findings          int
	Elapsed           time.Duration
}

// Start begins to show progress until Stop.
func Start(opts Options) *Meter {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Interval == 0 {
		opts.Interval = lineInterval
		if opts.Terminal {
			opts.Interval = terminalInterval
		}
	}
	m := &Meter{opts: opts, begin: opts.Now(), stop: make(chan struct{}), facts: Facts{What: opts.What}}
	m.ended.Go(m.run)
	return m
}

func (m *Meter) run() {
	ticker := time.NewTicker(m.opts.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.mu.Lock()
			m.show()
			m.mu.Unlock()
		case <-m.stop:
			return
		}
	}
}

// Expect adds to what is to be done.
func (m *Meter) Expect(items int, bytes int64) {
	m.update(func(f *Facts) { f.TotalItems += items; f.TotalBytes += bytes })
}

// Done adds to what is done. The first time, it shows that the operation has begun, except on a terminal, where a short
// operation shall not flicker.
func (m *Meter) Done(items int, bytes int64) {
	m.update(func(f *Facts) {
		f.Items += items
		f.Bytes += bytes
		if !m.begun && !m.opts.Terminal {
			m.begun = true
			m.show()
		}
	})
}

// Found adds a finding.
func (m *Meter) Found() {
	m.update(func(f *Facts) { f.Findings++ })
}

func (m *Meter) update(change func(*Facts)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.facts)
}

// Stop ends the meter: on a terminal the line is removed, elsewhere a last one is written.
func (m *Meter) Stop() {
	if m == nil {
		return
	}
	close(m.stop)
	m.ended.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.opts.Terminal:
		m.show()
	case m.shown > 0:
		_, _ = fmt.Fprintf(m.opts.W, "\r%s\r", strings.Repeat(" ", m.shown))
	}
}

// show writes the line; mu is held. Progress is worth no error: what cannot be shown is not shown.
func (m *Meter) show() {
	m.facts.Elapsed = m.opts.Now().Sub(m.begin)
	line := Line(m.facts)
	if !m.opts.Terminal {
		_, _ = fmt.Fprintln(m.opts.W, line)
		return
	}
	width := len([]rune(line))
	_, _ = fmt.Fprintf(m.opts.W, "\r%s%s", line, strings.Repeat(" ", max(0, m.shown-width)))
	m.shown = width
}

// Line puts facts into words: what is done of how much, the rate, and when it will be done if it goes on like that.
func Line(f Facts) string {
	parts := []string{fmt.Sprintf("%d/%d %ss", f.Items, f.TotalItems, f.What)}
	seconds := f.Elapsed.Seconds()
	done, total := float64(f.Items), float64(f.TotalItems)
	if f.TotalBytes > 0 {
		parts = append(parts, text.Size(f.Bytes)+"/"+text.Size(f.TotalBytes))
		done, total = float64(f.Bytes), float64(f.TotalBytes)
		if seconds > 0 {
			parts = append(parts, text.Size(int64(done/seconds))+"/s")
		}
	} else if seconds > 0 {
		parts = append(parts, fmt.Sprintf("%.0f/s", done/seconds))
	}
	if done > 0 && done < total && seconds > 0 {
		left := time.Duration((total - done) / done * float64(f.Elapsed))
		parts = append(parts, "ETA "+text.Age(left))
	}
	if f.Findings > 0 {
		parts = append(parts, text.Count(f.Findings, "finding"))
	}
	return strings.Join(parts, ", ")
}
