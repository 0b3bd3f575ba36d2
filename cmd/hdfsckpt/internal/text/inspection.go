package text

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

// Inspection shows the head of a checkpoint, the tree of its operators, and what is large.
func Inspection(p *Printer, i *report.Inspection) {
	p.Line("%s", p.Paint(Clean(i.Pointer), Bold))
	for _, row := range headRows(i) {
		p.Line("  %-11s %s", row[0], row[1])
	}
	p.Line("")
	root := &Node{Text: p.Paint(Count(len(i.Operators), "operator"), Bold)}
	for k := range i.Operators {
		operatorNode(p, root, &i.Operators[k], i.Totals.StateBytes)
	}
	root.Print(p)
	if len(i.Largest) > 0 {
		p.Line("")
		largest(p, i)
	}
}

func headRows(i *report.Inspection) [][2]string {
	metadata := fmt.Sprintf("%s, version %d, without checksum", Size(i.Metadata.Bytes), i.Metadata.Version)
	if i.Metadata.Checksum {
		metadata = fmt.Sprintf("%s, version %d, its checksum is right", Size(i.Metadata.Bytes), i.Metadata.Version)
	}
	rows := [][2]string{{"checkpoint", fmt.Sprint(i.ID)}, {"metadata", metadata}}
	if f := i.Footer; f != nil {
		rows = append(rows, [2]string{"taken", fmt.Sprintf("%s, kind %s, %s", f.Created.Format(time.RFC3339), f.Kind, durabilityText(f.Durability))})
	}
	if i.Properties != nil {
		rows = append(rows, [2]string{"properties", propertiesText(i.Properties)})
	}
	t := i.Totals
	rows = append(rows,
		[2]string{"state", fmt.Sprintf("%s of %s, %s written for this checkpoint, %s inline", Size(t.StateBytes), Count(t.Subtasks, "subtask"), Size(t.NewBytes), Size(t.InlineBytes))},
		[2]string{"objects", objectTotals(t)})
	for _, m := range i.MasterStates {
		rows = append(rows, [2]string{"master", fmt.Sprintf("%s, version %d, %s", Clean(m.Name), m.Version, Size(int64(m.Bytes)))})
	}
	return rows
}

func durabilityText(durability string) string {
	if durability == "default" {
		return "durability not recorded"
	}
	return durability
}

func objectTotals(t report.Totals) string {
	parts := []string{filesText(t.Inventory)}
	switch {
	case t.Objects == 0:
	case t.Checksummed == 0:
		parts = append(parts, "without checksums")
	case t.Checksummed == t.Objects:
		parts = append(parts, "with checksums")
	default:
		parts = append(parts, fmt.Sprintf("%d with checksums", t.Checksummed))
	}
	if t.Directories > 0 {
		parts = append(parts, Count(t.Directories, "directory")+" of merged files")
	}
	return strings.Join(parts, ", ")
}

// filesText shows how many files there are, and how many of them other checkpoints may need.
func filesText(i report.Inventory) string {
	text := recorded(i.Objects, "file", i.Bytes, i.UnknownSizes)
	if i.Shared > 0 {
		text += fmt.Sprintf(", %d shared %s", i.Shared, Size(i.SharedBytes))
	}
	return text
}

func propertiesText(p *report.Properties) string {
	if p.Null {
		return "null"
	}
	parts := []string{Clean(p.Type)}
	for _, value := range []string{p.Sharing, p.Format, p.Action} {
		if value != "" && value != "NONE" {
			parts = append(parts, Clean(value))
		}
	}
	if p.Forced {
		parts = append(parts, "forced")
	}
	if p.Unclaimed {
		parts = append(parts, "unclaimed")
	}
	if len(p.DiscardOn) > 0 {
		parts = append(parts, "discarded when "+strings.Join(p.DiscardOn, ", "))
	} else {
		parts = append(parts, "never discarded")
	}
	return strings.Join(parts, "; ")
}

func operatorNode(p *Printer, root *Node, o *report.Operator, whole int64) {
	name := Clean(o.Name)
	if name == "" {
		name = "(no name)"
	}
	title := fmt.Sprintf("%s  %s (%s)", p.Paint(name, Bold), Size(o.StateBytes), Percent(o.StateBytes, whole))
	node := root.Add(title)
	if o.UID != "" {
		node.Add("uid " + Clean(o.UID))
	}
	node.Add(fmt.Sprintf("id %s", o.ID))
	node.Add(parallelismText(o))
	if len(o.States) > 0 {
		states := node.Add("operator states")
		for _, s := range o.States {
			states.Add(fmt.Sprintf("%s: %s, %s%s", Clean(s.Name), s.Mode, Count(s.Partitions, "partition"), rawText(s.Role)))
		}
	}
	for _, group := range o.Handles {
		node.Add(groupText(group))
	}
	if o.Files.Objects > 0 {
		node.Add("files: " + filesText(o.Files))
	}
	if len(o.Subtasks) > 0 {
		subtasks := node.Add("subtasks")
		for _, s := range o.Subtasks {
			subtaskNode(subtasks, s)
		}
	}
}

func rawText(role report.Role) string {
	if role == report.RawOperator {
		return ", raw"
	}
	return ""
}

func parallelismText(o *report.Operator) string {
	parts := []string{fmt.Sprintf("parallelism %d of at most %d", o.Parallelism, o.MaxParallelism)}
	switch {
	case o.FullyFinished:
		parts = append(parts, "finished")
	case o.SubtasksFinished > 0:
		parts = append(parts, fmt.Sprintf("%s, %d finished", Count(o.SubtasksWithState, "subtask"), o.SubtasksFinished))
	default:
		parts = append(parts, Count(o.SubtasksWithState, "subtask"))
	}
	return strings.Join(parts, ", ")
}

func groupText(g report.HandleGroup) string {
	text := fmt.Sprintf("%s: %d × %s, %s", spaced(string(g.Role)), g.Count, spaced(g.Kind), Size(g.StateBytes))
	if g.NewBytes != g.StateBytes {
		text += fmt.Sprintf(" (%s new)", Size(g.NewBytes))
	}
	var streams []string
	for _, s := range g.Streams {
		if s.Storage == report.Inline {
			streams = append(streams, fmt.Sprintf("%d inline %s", s.Count, Size(s.Bytes)))
		} else {
			streams = append(streams, fmt.Sprintf("%s %s", Count(s.Count, spaced(string(s.Storage))), Size(s.Bytes)))
		}
	}
	if len(streams) > 0 {
		text += ": " + strings.Join(streams, ", ")
	}
	return text
}

func subtaskNode(parent *Node, s report.Subtask) {
	if s.Finished {
		parent.Add(fmt.Sprintf("%d finished", s.Index))
		return
	}
	node := parent.Add(fmt.Sprint(s.Index))
	for _, h := range s.Handles {
		handle := node.Add(fmt.Sprintf("%s: %s, %s", spaced(string(h.Role)), spaced(h.Kind), Size(h.StateBytes)))
		for _, stream := range h.Streams {
			handle.Add(streamText(stream))
		}
	}
}

func streamText(s report.Stream) string {
	text := spaced(string(s.Storage)) + " " + Size(s.Bytes)
	if s.Path != "" {
		text += " " + Clean(s.Path)
	}
	if s.Storage == report.Segment {
		text += fmt.Sprintf(" at %d", s.Offset)
	}
	return text
}

// near shortens the path of a file in the checkpoint's directory to "./x", and of one beside that to "../x".
func near(pointer, file string) string {
	if rest, ok := strings.CutPrefix(file, pointer+"/"); ok {
		return "./" + Clean(rest)
	}
	if rest, ok := strings.CutPrefix(file, path.Dir(pointer)+"/"); ok {
		return "../" + Clean(rest)
	}
	return Clean(file)
}

// largest shows the largest streams and whose they are.
func largest(p *Printer, i *report.Inspection) {
	table := NewTable(Column{Title: "LARGEST", Right: true}, Column{Title: "SHARE", Right: true}, Column{Title: "OPERATOR"},
		Column{Title: "SUBTASK", Right: true}, Column{Title: "STATE"}, Column{Title: "WHERE"})
	for _, l := range i.Largest {
		operator := Clean(l.Operator)
		if operator == "" {
			operator = l.OperatorID
		}
		subtask := absent
		if l.Subtask != nil {
			subtask = fmt.Sprint(*l.Subtask)
		}
		where := near(i.Pointer, l.Path)
		switch {
		case l.Storage == report.Inline:
			where = "inline"
		case l.Storage == report.Segment:
			where += fmt.Sprintf(" at %d", l.Offset)
		}
		table.Row(Cell{Text: Size(l.Bytes)}, Cell{Text: Percent(l.Bytes, i.Totals.StateBytes)}, Cell{Text: operator},
			Cell{Text: subtask}, Cell{Text: spaced(string(l.Role))}, Cell{Text: where})
	}
	table.Print(p)
}
