package text

import (
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// Disposal shows for each checkpoint what became of it, or would become of it, and file by file what goes and what stays.
func Disposal(p *Printer, d *report.Disposal) {
	for _, c := range d.Checkpoints {
		p.Line("%s: %s", Clean(c.Pointer), disposedText(p, c))
		verb := "deleted"
		if c.Status == report.Planned {
			verb = "delete"
		}
		for _, name := range c.Removed {
			p.Line("  %-8s %s", verb, Clean(name))
		}
		for _, kept := range c.Kept {
			p.Line("  %s %s: %s", p.Paint("keep    ", Dim), Clean(kept.Path), Clean(kept.Reason))
		}
		for _, name := range c.Left {
			p.Line("  %s %s", p.Paint("left    ", Bad), Clean(name))
		}
	}
	if planned := countStatus(d, report.Planned); planned > 0 {
		p.Line("nothing was changed: this was a dry run, --yes does it")
	}
}

func disposedText(p *Printer, c report.DisposedCheckpoint) string {
	files := fmt.Sprintf("%s (%s)", Count(len(c.Removed), "file"), Size(c.RemovedBytes))
	switch c.Status {
	case report.Planned:
		return "would delete its metadata and " + files
	case report.Disposed:
		return p.Paint("disposed", Good) + ", deleted its metadata and " + files
	case report.Gone:
		return "already gone"
	case report.NotDisposed:
		return p.Paint("refused", Bad)
	case report.HalfDisposed:
		return p.Paint("incomplete", Bad) + ", deleted " + files
	}
	return p.Paint("failed", Bad) + ", nothing was changed"
}

func countStatus(d *report.Disposal, status report.DisposalStatus) int {
	n := 0
	for _, c := range d.Checkpoints {
		if c.Status == status {
			n++
		}
	}
	return n
}
