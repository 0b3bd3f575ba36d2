package metadata

import "github.com/hdfsckpt/hdfsckpt/core"

// Loss is something that a checkpoint has and that a version of the format cannot hold, or that the Flink that reads this version
// does not know.
type Loss struct {
	// Field is the way to the first value that is affected, as in [Error]; Count is how many there are.
	Field string
	Count int
	// Reason is for people: what is lost, and what that does.
	Reason string
	// Unreadable: the Flink that a file of this version is for refuses the file. Otherwise it reads all state, and something
	// beside the state is gone.
	Unreadable bool
}

// Losses returns what [Append] leaves out, or writes in a form that the oldest Flink that is meant to read the version cannot
// read, when it writes the checkpoint in the given version; nil if nothing is lost. Merged channel handles are no loss: they are
// written as the handles that they were merged from. Nor are the names of operators if footer tells that a footer is written: they
// are there, though Flink does not see them.
func Losses(c *Checkpoint, version int, footer bool) []Loss {
	l := lossList{version: version}
	for i := range c.Operators {
		o := &c.Operators[i]
		field := "operators" + indexed(i)
		if version < firstWithNames && !footer && (o.Name != "" || o.UID != "") {
			l.add(field+".name", lossOfNames, false)
		}
		for k := range o.Subtasks {
			if s := o.Subtasks[k].State; s != nil {
				l.state(field+".subtasks"+indexed(k), s)
			}
		}
	}
	if p := c.Properties; version < firstWithProperties && p != nil && !p.Null {
		l.add("properties", lossOfProperties, false)
	}
	if c.Footer != nil && !footer {
		l.add("footer", lossOfFooter, false)
	}
	return l.losses
}

// The reasons of losses.
const (
	lossOfNames      = "names and uids of operators are known from version 5 on"
	lossOfProperties = "properties are known from version 4 on: Flink takes the file for a canonical savepoint that it does not own"
	lossOfFooter     = "the checksums that this project recorded, its kind and durability are left out"
	lossOfSegments   = "Flink before 1.20 cannot read states in merged files"
	lossOfChangelog  = "Flink before 1.16 cannot read the changelog handles of later ones"
)

type lossList struct {
	version int
	losses  []Loss
}

func (l *lossList) add(field, reason string, unreadable bool) {
	for i := range l.losses {
		if l.losses[i].Reason == reason {
			l.losses[i].Count++
			return
		}
	}
	l.losses = append(l.losses, Loss{Field: field, Count: 1, Reason: reason, Unreadable: unreadable})
}

// state looks for handles that came after the last Flink that wrote the version. Those of version 3 are 1.11 to 1.15; version 4
// is written by 1.16 to 1.20, and the last of them knows all handles.
func (l *lossList) state(field string, s *SubtaskState) {
	if l.version >= firstWithProperties {
		return
	}
	for _, h := range [...]*OperatorHandle{s.ManagedOperator, s.RawOperator} {
		if h != nil && (h.Merging != nil || isSegment(h.Delegate)) {
			l.add(field, lossOfSegments, true)
		}
	}
	for _, h := range [...]KeyedHandle{s.ManagedKeyed, s.RawKeyed} {
		l.keyed(field, h)
	}
	for _, list := range [...][]ChannelHandle{s.InputChannels, s.ResultSubpartitions} {
		for i := range list {
			l.stream(field, list[i].Delegate)
		}
	}
}

func (l *lossList) stream(field string, h core.StreamHandle) {
	if nested, ok := h.(*KeyGroupsHandle); ok {
		h = nested.Delegate
	}
	if isSegment(h) {
		l.add(field, lossOfSegments, true)
	}
}

func (l *lossList) keyed(field string, h KeyedHandle) {
	switch h := h.(type) {
	case *KeyGroupsHandle:
		l.stream(field, h.Delegate)
	case *IncrementalHandle:
		l.stream(field, h.Meta)
		for _, files := range [...][]NamedFile{h.Shared, h.Private} {
			for i := range files {
				l.stream(field, files[i].Handle)
			}
		}
	case *ChangelogFileHandle:
		if h.Layout == LayoutCurrent {
			l.add(field, lossOfChangelog, true)
		}
		for i := range h.Parts {
			l.stream(field, h.Parts[i].Handle)
		}
	case *ChangelogHandle:
		if h.Layout == LayoutCurrent {
			l.add(field, lossOfChangelog, true)
		}
		for _, parts := range [...][]KeyedHandle{h.Materialized, h.Changes} {
			for _, part := range parts {
				l.keyed(field, part)
			}
		}
	}
}
