package text

import (
	"fmt"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// Examination shows each step with what was seen, and the verdict.
func Examination(p *Printer, e *report.Examination) {
	verdict := p.Paint("healthy", Good)
	if !e.Healthy {
		verdict = p.Paint("not healthy", Bad)
	}
	p.Line("%s: %s", Clean(e.URL), verdict)
	for _, s := range e.Steps {
		style := map[report.StepStatus]Style{report.StepOK: Good, report.StepFailed: Bad, report.StepSkipped: Dim}[s.Status]
		details := s.Details
		if s.Milliseconds > 0 {
			details = append([]string{}, details...)
			details = append(details, fmt.Sprintf("%d ms", s.Milliseconds))
		}
		if len(details) == 0 {
			details = []string{""}
		}
		// A column of its own for each: the status has no more than seven letters.
		p.Line("%s", strings.TrimRight(fmt.Sprintf("  %-14s %s%*s %s", spaced(string(s.Name)), p.Paint(string(s.Status), style), 8-len(s.Status), "", Clean(details[0])), " "))
		for _, line := range details[1:] {
			p.Line("  %-14s %-8s %s", "", "", Clean(line))
		}
	}
}
