package fstest

import (
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// NamedCapabilities is one line of a [CapabilitiesTable].
type NamedCapabilities struct {
	Name         string
	Capabilities core.Capabilities
}

// CapabilitiesTable renders what file systems declare, one line each in the given order, as a Markdown table that is also
// aligned as plain text.
func CapabilitiesTable(fileSystems []NamedCapabilities) string {
	rows := [][]string{{
		"File system", "Durabilities", "NoReplaceFiles", "NoReplaceDirs", "Sync", "Replicas", "DetectsCorruptReads",
	}}
	for _, f := range fileSystems {
		c := f.Capabilities
		var durabilities []string
		for _, d := range c.Durabilities {
			durabilities = append(durabilities, d.String())
		}
		rows = append(rows, []string{
			f.Name, strings.Join(durabilities, ", "), yes(c.NoReplaceFiles), yes(c.NoReplaceDirs), yes(c.Sync), yes(c.Replicas),
			yes(c.DetectsCorruptReads),
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var table strings.Builder
	for i, row := range rows {
		for j, cell := range row {
			table.WriteString("| " + cell + strings.Repeat(" ", widths[j]-len(cell)+1))
		}
		table.WriteString("|\n")
		if i == 0 {
			for _, width := range widths {
				table.WriteString("|" + strings.Repeat("-", width+2))
			}
			table.WriteString("|\n")
		}
	}
	return table.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
