package text

import (
	"fmt"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// Conversion shows what was written, and what of the checkpoint is not in it.
func Conversion(p *Printer, c *report.Conversion) {
	if c.Written {
		p.Line("%s: version %d, was %d, %s%s", Clean(c.Target), c.ToVersion, c.FromVersion, Size(c.Bytes), conversionText(c))
	}
	for _, l := range c.Losses {
		what := "lost"
		if l.Unreadable {
			what = "unreadable"
		}
		p.Line("  %s %s: %s", p.Paint(fmt.Sprintf("%-10s", what), Bad), placesText(l), Clean(l.Reason))
	}
}

func placesText(l report.Loss) string {
	if l.Count == 1 {
		return l.Field
	}
	return fmt.Sprintf("%s and %d more", l.Field, l.Count-1)
}

func conversionText(c *report.Conversion) string {
	var parts []string
	for _, n := range []struct {
		n    int
		text string
	}{
		{c.MadeAbsolute, "relative paths made absolute"},
		{c.Mapped, "paths mapped"},
		{c.Unmerged, "merged channel handles taken apart"},
	} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf(", %d %s", n.n, n.text))
		}
	}
	return strings.Join(parts, "")
}
