package text

import (
	"fmt"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// Verification shows for each checkpoint one line with the verdict and one for each finding.
func Verification(p *Printer, v *report.Verification) {
	for _, c := range v.Checkpoints {
		style := map[report.Verdict]Style{report.Sound: Good, report.Unsound: Bad, report.Unknown: Busy}[c.Verdict]
		p.Line("%s: %s: %s", Clean(c.Pointer), p.Paint(string(c.Verdict), style), verifiedText(v, c))
		for _, f := range c.Findings {
			p.Line("  %s %s: %s", p.Paint(fmt.Sprintf("%-10s", f.Kind), Bad), Clean(f.Path), Clean(f.Message))
		}
		if left := c.Found.All() - len(c.Findings); left > 0 {
			p.Line("  and %s more: %s in all", Count(left, "finding"), foundText(c.Found))
		}
	}
}

// foundText shows how many findings of each kind there are.
func foundText(f report.Found) string {
	var parts []string
	for _, kind := range []struct {
		n    int
		kind report.FindingKind
	}{
		{f.Missing, report.Missing},
		{f.Short, report.Short},
		{f.Long, report.Long},
		{f.Corrupt, report.Corrupt},
		{f.Unreadable, report.Unreadable},
	} {
		if kind.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", kind.n, kind.kind))
		}
	}
	return strings.Join(parts, ", ")
}

// verifiedText says what was checked and what could not be.
func verifiedText(v *report.Verification, c report.Verified) string {
	if c.MetadataVersion == 0 {
		return "the metadata cannot be read"
	}
	parts := []string{recorded(c.Objects, "object", c.Bytes, c.UnknownSizes)}
	if c.Checked < c.Objects {
		parts = append(parts, fmt.Sprintf("%d not checked", c.Objects-c.Checked))
	}
	if v.Deep {
		parts = append(parts, fmt.Sprintf("%s read", Size(c.ReadBytes)))
		if c.WithoutChecksum > 0 {
			parts = append(parts, fmt.Sprintf("%d without checksum", c.WithoutChecksum))
		}
	}
	if v.Checksums {
		parts = append(parts, fmt.Sprintf("checksums of %d compared", c.Compared))
		if c.NotCompared > 0 {
			parts = append(parts, fmt.Sprintf("of %d not", c.NotCompared))
		}
	}
	if !c.MetadataChecksum {
		parts = append(parts, "metadata without checksum")
	}
	if n := c.Found.All(); n > 0 {
		parts = append(parts, Count(n, "finding"))
	}
	return strings.Join(parts, ", ")
}
