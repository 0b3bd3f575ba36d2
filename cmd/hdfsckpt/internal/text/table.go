package text

import (
	"strings"
	"unicode/utf8"
)

// Table lays out cells in columns.
type Table struct {
	columns []Column
	rows    [][]Cell
}

// Column of a table.
type Column struct {
	Title string
	// Right aligns the cells to the right, for numbers.
	Right bool
}

// Cell of a table.
type Cell struct {
	Text  string
	Style Style
}

// NewTable has the given columns and no rows.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds a row; it must have a cell for each column.
func (t *Table) Row(cells ...Cell) { t.rows = append(t.rows, cells) }

// Print writes the titles and the rows.
func (t *Table) Print(p *Printer) {
	widths := make([]int, len(t.columns))
	titles := make([]Cell, len(t.columns))
	for i, column := range t.columns {
		titles[i] = Cell{column.Title, Bold}
	}
	for _, row := range append([][]Cell{titles}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	t.print(p, titles, widths)
	for _, row := range t.rows {
		t.print(p, row, widths)
	}
}

func (t *Table) print(p *Printer, row []Cell, widths []int) {
	var b strings.Builder
	for i, cell := range row {
		gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell.Text))
		painted := p.Paint(cell.Text, cell.Style)
		switch {
		case t.columns[i].Right:
			b.WriteString(gap + painted)
		case i == len(row)-1:
			b.WriteString(painted)
		default:
			b.WriteString(painted + gap)
		}
		if i < len(row)-1 {
			b.WriteString("  ")
		}
	}
	p.Line("%s", b.String())
}
