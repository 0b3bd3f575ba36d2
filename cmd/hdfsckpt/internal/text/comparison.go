package text

import (
	"fmt"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// Comparison shows what is different between two checkpoints.
func Comparison(p *Printer, c *report.Comparison) {
	for _, side := range []struct {
		title string
		of    report.Compared
	}{{"from", c.From}, {"to", c.To}} {
		p.Line("%-4s  %s: checkpoint %d, version %d, %s of state, %s written for it", side.title, Clean(side.of.Pointer), side.of.ID,
			side.of.Version, Size(side.of.StateBytes), Size(side.of.NewBytes))
	}
	f := c.Files
	p.Line("files kept %d (%s), added %d (%s), removed %d (%s)%s", f.Kept, Size(f.KeptBytes), f.Added, Size(f.AddedBytes), f.Removed,
		Size(f.RemovedBytes), resizedText(f))
	p.Line("")
	root := &Node{Text: p.Paint(Count(len(c.Operators), "operator"), Bold)}
	for i := range c.Operators {
		operatorChange(p, root, &c.Operators[i])
	}
	root.Print(p)
	for _, change := range c.Changes {
		p.Line("%s %s  %s", changeMark(p, change.Change), Clean(change.Path), Size(change.Bytes))
	}
	if left := f.Added + f.Removed - len(c.Changes); left > 0 && len(c.Changes) > 0 {
		p.Line("and %s more", Count(left, "file"))
	}
}

func resizedText(f report.FileChanges) string {
	if f.Resized == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of those kept with another size", f.Resized)
}

func changeMark(p *Printer, change report.Change) string {
	switch change {
	case report.Added:
		return p.Paint("+", Good)
	case report.Removed:
		return p.Paint("-", Bad)
	case report.Changed:
		return p.Paint("~", Busy)
	}
	return "="
}

func operatorChange(p *Printer, root *Node, o *report.OperatorChange) {
	name := Clean(o.Name)
	if name == "" {
		name = o.ID
	}
	node := root.Add(fmt.Sprintf("%s %s  %s", changeMark(p, o.Change), p.Paint(name, Bold), sizeChange(o)))
	if o.Change != report.Changed {
		return
	}
	for _, n := range []struct {
		what     string
		from, to int
	}{
		{"parallelism", o.From.Parallelism, o.To.Parallelism},
		{"max parallelism", o.From.MaxParallelism, o.To.MaxParallelism},
		{"subtasks", o.From.Subtasks, o.To.Subtasks},
		{"files", o.From.Objects, o.To.Objects},
	} {
		if n.from != n.to {
			node.Add(fmt.Sprintf("%s %d → %d", n.what, n.from, n.to))
		}
	}
	if o.From.FullyFinished != o.To.FullyFinished {
		node.Add(fmt.Sprintf("finished: %t → %t", o.From.FullyFinished, o.To.FullyFinished))
	}
	for _, s := range o.States {
		node.Add(fmt.Sprintf("%s state %s%s: %s", changeMark(p, s.Change), Clean(s.Name), rawText(s.Role), stateChangeText(s)))
	}
	for _, h := range o.HandlesAdded {
		node.Add(fmt.Sprintf("%s %s", changeMark(p, report.Added), spaced(h)))
	}
	for _, h := range o.HandlesRemoved {
		node.Add(fmt.Sprintf("%s %s", changeMark(p, report.Removed), spaced(h)))
	}
}

// sizeChange shows the size of an operator's state before and after, and how much of the later one was written for it.
func sizeChange(o *report.OperatorChange) string {
	switch {
	case o.Change == report.Added:
		return Size(o.To.StateBytes)
	case o.Change == report.Removed, o.From.StateBytes == o.To.StateBytes:
		return Size(o.From.StateBytes)
	}
	text := Size(o.From.StateBytes) + " → " + Size(o.To.StateBytes)
	if o.From.StateBytes > 0 {
		text += fmt.Sprintf(" (%+.0f%%)", 100*float64(o.To.StateBytes-o.From.StateBytes)/float64(o.From.StateBytes))
	}
	return text
}

func stateChangeText(s report.StateChange) string {
	side := func(mode string, partitions int) string {
		return fmt.Sprintf("%s, %s", mode, Count(partitions, "partition"))
	}
	var parts []string
	if s.Change != report.Added {
		parts = append(parts, side(s.FromMode, s.FromPartitions))
	}
	if s.Change != report.Removed {
		parts = append(parts, side(s.ToMode, s.ToPartitions))
	}
	return strings.Join(parts, " → ")
}
