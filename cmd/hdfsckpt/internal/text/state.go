package text

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// StateListing shows the stores of a Spark checkpoint as a table.
func StateListing(p *Printer, l *report.StateListing) {
	p.Line("%s", Clean(l.Checkpoint))
	query := "no metadata"
	if l.QueryID != nil {
		query = Clean(*l.QueryID)
	}
	p.Line("  query    %s", query)
	p.Line("  batches  begun up to %s, committed up to %s", numberText(l.LastOffset), numberText(l.LastCommit))
	p.Line("  pinned   %s", pinnedText(l.Pins))
	p.Line("")
	if len(l.Stores) == 0 {
		p.Line("no state stores")
		return
	}
	table := NewTable(
		Column{Title: "OPERATOR"}, Column{Title: "PARTITION", Right: true}, Column{Title: "STORE"}, Column{Title: "PROVIDER"}, Column{Title: "STATE"},
		Column{Title: "COMMITTED", Right: true}, Column{Title: "VERSIONS", Right: true}, Column{Title: "LOADABLE", Right: true},
		Column{Title: "SNAPSHOTS", Right: true}, Column{Title: "FILES", Right: true}, Column{Title: "SIZE", Right: true},
	)
	for _, s := range l.Stores {
		operator := strconv.FormatInt(s.Operator, 10)
		if s.Name != "" {
			operator += " " + Clean(s.Name)
		}
		table.Row(
			Cell{Text: operator}, Cell{Text: strconv.FormatInt(s.Partition, 10)}, Cell{Text: Clean(s.Store)}, Cell{Text: s.Provider}, healthCell(s.Health),
			Cell{Text: numberText(s.Begin)}, Cell{Text: rangeText(s)}, Cell{Text: strconv.Itoa(s.Loadable)},
			Cell{Text: strconv.Itoa(s.Snapshots)}, Cell{Text: strconv.Itoa(s.Files)}, Cell{Text: Size(s.Bytes)},
		)
	}
	table.Print(p)
}

func healthCell(h report.StateHealth) Cell {
	style := map[report.StateHealth]Style{report.StateReady: Good, report.StateIncomplete: Bad, report.StateMissing: Bad, report.StateEmpty: Dim}[h]
	return Cell{Text: string(h), Style: style}
}

func numberText(n *int64) string {
	if n == nil {
		return absent
	}
	return strconv.FormatInt(*n, 10)
}

// rangeText shows the lowest and the highest version, and how many there are if some between are missing.
func rangeText(s report.StateStore) string {
	if s.Lowest == nil {
		return absent
	}
	text := fmt.Sprintf("%d–%d", *s.Lowest, *s.Highest)
	if *s.Lowest == *s.Highest {
		text = strconv.FormatInt(*s.Lowest, 10)
	}
	if int64(s.Versions) < *s.Highest-*s.Lowest+1 {
		text += fmt.Sprintf(" (%d)", s.Versions)
	}
	return text
}

func pinnedText(pins report.Pinned) string {
	if pins.Provider == nil {
		return "nothing: there is no offset log that tells"
	}
	parts := []string{"provider " + Clean(*pins.Provider)}
	if pins.Compression != nil {
		parts = append(parts, "compression "+*pins.Compression)
	}
	if pins.RowChecksum != nil {
		parts = append(parts, "row checksums "+onOff(*pins.RowChecksum))
	}
	if pins.Partitions != nil {
		parts = append(parts, Count(int(*pins.Partitions), "partition"))
	}
	return strings.Join(parts, ", ")
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// StateInfo shows one store with its versions.
func StateInfo(p *Printer, i *report.StateInfo) {
	p.Line("%s: %s", Clean(i.Checkpoint), i.StateID)
	p.Line("  directory    %s", Clean(i.Directory))
	p.Line("  provider     %s", i.Provider)
	p.Line("  pinned       %s", pinnedText(i.Pins))
	compression, checksum, chain := "no file tells", "no file tells", absent
	if i.Compression != nil {
		compression = *i.Compression
	}
	if i.RowChecksum != nil {
		checksum = onOff(*i.RowChecksum)
	}
	if i.Chain != nil {
		chain = Count(*i.Chain, "delta") + " to replay for version " + numberText(i.Highest)
	}
	p.Line("  compression  %s", compression)
	p.Line("  checksums    of rows %s", checksum)
	p.Line("  state        %s, committed version %s", p.Paint(string(i.Health), healthCell(i.Health).Style), numberText(i.Begin))
	p.Line("  chain        %s", chain)
	p.Line("  size         %s, %s", Count(i.Files, "file"), Size(i.Bytes))
	stateSchemas(p, i)
	p.Line("")
	stateVersions(p, i.List)
	for _, name := range i.Foreign {
		p.Line("  foreign name: %s", Clean(name))
	}
	stateFindings(p, i.Findings)
}

func stateSchemas(p *Printer, i *report.StateInfo) {
	for _, s := range i.Schemas {
		family := ""
		if s.Family != "" {
			family = " of " + Clean(s.Family)
		}
		p.Line("  key%s    %s", family, Clean(string(s.Key)))
		p.Line("  value%s  %s", family, Clean(string(s.Value)))
	}
}

func stateVersions(p *Printer, versions []report.StateVersion) {
	table := NewTable(
		Column{Title: "VERSION", Right: true}, Column{Title: "ID"}, Column{Title: "TIME"}, Column{Title: "LOADABLE"},
		Column{Title: "DELTA", Right: true}, Column{Title: "SNAPSHOT", Right: true}, Column{Title: "FOOTER"},
	)
	for _, v := range versions {
		id, loadable, footer := absent, Cell{Text: "no", Style: Bad}, absent
		if v.ID != "" {
			id = Clean(v.ID)
		}
		if v.Loadable {
			loadable = Cell{Text: "yes"}
		}
		if v.Footer {
			footer = "yes"
		}
		table.Row(
			Cell{Text: strconv.FormatInt(v.Version, 10)}, Cell{Text: id}, Cell{Text: v.Time.Format(time.RFC3339)}, loadable,
			Cell{Text: sizeText(v.Delta)}, Cell{Text: sizeText(v.Snapshot)}, Cell{Text: footer},
		)
	}
	table.Print(p)
}

func stateFindings(p *Printer, findings []report.StateFinding) {
	for _, f := range findings {
		style := map[string]Style{"damage": Bad, "warning": Busy, "unclear": Busy}[f.Severity]
		p.Line("  %s %s: %s", p.Paint(fmt.Sprintf("%-11s", f.Kind), style), Clean(f.Path), Clean(f.Message))
		if f.Advice != "" {
			p.Line("              %s", Clean(f.Advice))
		}
	}
}

// StateRaw writes one line for each entry: the key, a space, the value, in hexadecimal digits.
func StateRaw(w io.Writer, key, value []byte) error {
	line := make([]byte, 0, 2*(len(key)+len(value))+2)
	line = hex.AppendEncode(line, key)
	line = append(line, ' ')
	line = hex.AppendEncode(line, value)
	_, err := w.Write(append(line, '\n'))
	return err
}

// Quoted shows bytes as text in quotation marks, with escapes for what is not printable ASCII.
func Quoted(b []byte) string { return strconv.QuoteToASCII(string(b)) }

// StateDiff shows what differs, then the counts.
func StateDiff(p *Printer, d *report.StateDiff) {
	for _, e := range d.Entries {
		switch {
		case e.From == nil:
			p.Line("%s", p.Paint(fmt.Sprintf("+ %x %x", []byte(e.Key), []byte(e.To)), Good))
		case e.To == nil:
			p.Line("%s", p.Paint(fmt.Sprintf("- %x %x", []byte(e.Key), []byte(e.From)), Bad))
		default:
			p.Line("%s", p.Paint(fmt.Sprintf("~ %x %x %x", []byte(e.Key), []byte(e.From), []byte(e.To)), Busy))
		}
	}
	p.Line("%s: version %d to %d: %d added, %d removed, %d changed, %d equal", d.StateID, d.From.Version, d.To.Version, d.Added, d.Removed, d.Changed, d.Equal)
}

// StateHistory shows one line for each version.
func StateHistory(p *Printer, h *report.StateHistory) {
	if h.Key != nil {
		keyHistory(p, h)
		return
	}
	table := NewTable(
		Column{Title: "VERSION", Right: true}, Column{Title: "TIME"}, Column{Title: "PUTS", Right: true}, Column{Title: "REMOVALS", Right: true},
		Column{Title: "MERGES", Right: true}, Column{Title: "KEYS", Right: true}, Column{Title: "DELTA", Right: true},
		Column{Title: "SNAPSHOT", Right: true}, Column{Title: "PROBLEM"},
	)
	for _, e := range h.Events {
		problem := Cell{Text: absent}
		if e.Problem != nil {
			problem = Cell{Text: Clean(e.Problem.Message), Style: Bad}
		}
		table.Row(
			Cell{Text: strconv.FormatInt(e.Version, 10)}, Cell{Text: e.Time.Format(time.RFC3339)}, Cell{Text: numberText(e.Puts)}, Cell{Text: numberText(e.Removals)},
			Cell{Text: numberText(e.Merges)}, Cell{Text: numberText(e.Keys)}, Cell{Text: sizeText(e.Delta)}, Cell{Text: sizeText(e.Snapshot)},
			problem,
		)
	}
	table.Print(p)
}

func keyHistory(p *Printer, h *report.StateHistory) {
	table := NewTable(Column{Title: "VERSION", Right: true}, Column{Title: "TIME"}, Column{Title: "CHANGE"}, Column{Title: "VALUE"})
	for _, e := range h.Events {
		value := absent
		if e.Value != nil {
			value = hex.EncodeToString(e.Value)
		}
		if e.Problem != nil {
			value = Clean(e.Problem.Message)
		}
		table.Row(Cell{Text: strconv.FormatInt(e.Version, 10)}, Cell{Text: e.Time.Format(time.RFC3339)}, Cell{Text: e.Change}, Cell{Text: value})
	}
	table.Print(p)
}

// StateVerification shows one line for each store and two for each finding.
func StateVerification(p *Printer, v *report.StateVerification) {
	stateFindings(p, v.Findings)
	for _, s := range v.Stores {
		style := map[report.Verdict]Style{report.Sound: Good, report.Unsound: Bad, report.Unknown: Busy}[s.Verdict]
		parts := []string{
			fmt.Sprintf("%d of %s loadable", s.Loadable, Count(s.Versions, "version")),
			fmt.Sprintf("%s, %s", Count(s.Files, "file"), Size(s.Bytes)),
		}
		if s.WithoutChecksum > 0 {
			parts = append(parts, fmt.Sprintf("%d without checksum", s.WithoutChecksum))
		}
		if n := len(s.Findings); n > 0 {
			parts = append(parts, Count(n, "finding"))
		}
		p.Line("%s: %s: %s", s.StateID, p.Paint(string(s.Verdict), style), strings.Join(parts, ", "))
		stateFindings(p, s.Findings)
	}
}

// StateWork shows what a writing verb did, or would do.
func StateWork(p *Printer, w *report.StateWork) {
	idle, planned := 0, false
	for _, s := range w.Stores {
		if s.Status == report.WorkNothing {
			idle++
			continue
		}
		planned = planned || s.Status == report.WorkPlanned
		style := map[report.WorkStatus]Style{report.WorkDone: Good, report.WorkFailed: Bad, report.WorkRefused: Bad}[s.Status]
		p.Line("%s: version %d: %s", s.StateID, s.Version, p.Paint(spaced(string(s.Status)), style))
		for _, step := range s.Steps {
			line := fmt.Sprintf("  %-10s %s", step.Do, Clean(step.Path))
			if step.Reason != "" {
				line += ": " + Clean(step.Reason)
			}
			p.Line("%s", line)
		}
	}
	if idle > 0 {
		p.Line("nothing to do in %s", Count(idle, "store"))
	}
	if w.DryRun && planned {
		p.Line("nothing was changed: this was a dry run, --yes does it")
	}
}
