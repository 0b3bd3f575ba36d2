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
		p.Line("%s: %s: %s", Clean(c.Pointer), p.Paint(string(c.Verdict), style), verifiedText(v.Deep, c))
		for _, f := range c.Findings {
			p.Line("  %s %s: %s", p.Paint(fmt.Sprintf("%-10s", f.Kind), Bad), Clean(f.Path), Clean(f.Message))
		}
	}
}

// verifiedText says what was checked and what could not be.
func verifiedText(deep bool, c report.Verified) string {
	if c.MetadataVersion == 0 {
		return "the metadata cannot be read"
	}
	parts := []string{recorded(c.Objects, "object", c.Bytes, c.UnknownSizes)}
	if c.Checked < c.Objects {
		parts = append(parts, fmt.Sprintf("%d not checked", c.Objects-c.Checked))
	}
	if deep {
		parts = append(parts, fmt.Sprintf("%s read", Size(c.ReadBytes)))
		if c.WithoutChecksum > 0 {
			parts = append(parts, fmt.Sprintf("%d without checksum", c.WithoutChecksum))
		}
	}
	if !c.MetadataChecksum {
		parts = append(parts, "metadata without checksum")
	}
	if n := len(c.Findings); n > 0 {
		parts = append(parts, Count(n, "finding"))
	}
	return strings.Join(parts, ", ")
}
