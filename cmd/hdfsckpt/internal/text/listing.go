package text

import (
	"strconv"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// absent stands in a table for what is not known or does not apply.
const absent = "-"

// Listing shows the checkpoints below a directory as a table.
func Listing(p *Printer, l *report.Listing) {
	if len(l.Entries) == 0 {
		p.Line("no checkpoints or savepoints in %s", Clean(l.Root))
		return
	}
	table := NewTable(
		Column{Title: "JOB"}, Column{Title: "NAME"}, Column{Title: "ID", Right: true}, Column{Title: "KIND"}, Column{Title: "STATE"},
		Column{Title: "AGE", Right: true}, Column{Title: "METADATA", Right: true}, Column{Title: "OBJECTS", Right: true},
		Column{Title: "SIZE", Right: true},
	)
	for _, e := range l.Entries {
		table.Row(
			Cell{Text: jobText(e)}, Cell{Text: Clean(e.Name())}, Cell{Text: idText(e.ID)}, Cell{Text: string(e.Kind)}, stateCell(e.State),
			Cell{Text: Age(time.Duration(e.AgeSeconds) * time.Second)}, Cell{Text: sizeText(e.MetadataBytes)},
			Cell{Text: countText(e.Objects)}, Cell{Text: objectsText(e)},
		)
	}
	table.Print(p)
}

func jobText(e report.Entry) string {
	switch {
	case e.Job != "":
		return e.Job
	case e.Prefix != "":
		return e.Prefix + "…"
	}
	return absent
}

func idText(id *int64) string {
	if id == nil {
		return absent
	}
	return strconv.FormatInt(*id, 10)
}

func stateCell(s report.State) Cell {
	style := map[report.State]Style{
		report.Complete: Good, report.InProgress: Busy, report.Broken: Bad, report.Disposing: Dim, report.Emptied: Dim,
	}[s]
	return Cell{Text: spaced(string(s)), Style: style}
}

// spaced turns a value of the JSON interface into words.
func spaced(value string) string { return strings.ReplaceAll(value, "_", " ") }

func sizeText(bytes *int64) string {
	if bytes == nil {
		return absent
	}
	return Size(*bytes)
}

func countText(n *int) string {
	if n == nil {
		return absent
	}
	return strconv.Itoa(*n)
}

// objectsText is the size of all objects; a plus tells that some have no recorded size.
func objectsText(e report.Entry) string {
	text := sizeText(e.ObjectBytes)
	if e.UnknownSizes > 0 {
		text += "+"
	}
	return text
}
