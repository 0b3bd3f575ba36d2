package report

import "slices"

// Comparison is the result of diff.
type Comparison struct {
	From Compared `json:"from"`
	To   Compared `json:"to"`
	// Operators of both, those of From first; they are told apart by their ids.
	Operators []OperatorChange `json:"operators"`
	Files     FileChanges      `json:"files"`
	// Changes are the first files that only one of both needs, in the order of the metadata, if they were asked for; the others are
	// counted.
	Changes []FileChange `json:"changes"`
}

// Compared is one of two checkpoints that are compared.
type Compared struct {
	Pointer string `json:"pointer"`
	ID      int64  `json:"id"`
	Version int    `json:"version"`
	// StateBytes as in Totals.
	StateBytes int64 `json:"state_bytes"`
	NewBytes   int64 `json:"new_bytes"`
}

// Change says what became of something from one checkpoint to the other. The values are part of the JSON interface.
type Change string

// The changes.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
	Same    Change = "same"
)

// OperatorChange is what became of an operator. Of one that was added or removed, the numbers of the other side are 0.
type OperatorChange struct {
	ID     string `json:"id"`
	UID    string `json:"uid,omitempty"`
	Name   string `json:"name,omitempty"`
	Change Change `json:"change"`
	// Sides are From and To.
	From OperatorSide `json:"from"`
	To   OperatorSide `json:"to"`
	// States that are not the same on both sides.
	States []StateChange `json:"states"`
	// Handles are those that there are on one side only, such as "managed_keyed incremental".
	HandlesAdded   []string `json:"handles_added"`
	HandlesRemoved []string `json:"handles_removed"`
}

// OperatorSide is an operator in one of the checkpoints.
type OperatorSide struct {
	Parallelism    int   `json:"parallelism"`
	MaxParallelism int   `json:"max_parallelism"`
	Subtasks       int   `json:"subtasks"`
	FullyFinished  bool  `json:"fully_finished"`
	StateBytes     int64 `json:"state_bytes"`
	NewBytes       int64 `json:"new_bytes"`
	Objects        int   `json:"objects"`
	ObjectBytes    int64 `json:"object_bytes"`
}

// StateChange is what became of a named operator state.
type StateChange struct {
	Name           string `json:"name"`
	Role           Role   `json:"role"`
	Change         Change `json:"change"`
	FromMode       string `json:"from_mode,omitempty"`
	ToMode         string `json:"to_mode,omitempty"`
	FromPartitions int    `json:"from_partitions"`
	ToPartitions   int    `json:"to_partitions"`
}

// FileChanges count the files that both checkpoints need, and those that only one does.
type FileChanges struct {
	Kept         int   `json:"kept"`
	KeptBytes    int64 `json:"kept_bytes"`
	Added        int   `json:"added"`
	AddedBytes   int64 `json:"added_bytes"`
	Removed      int   `json:"removed"`
	RemovedBytes int64 `json:"removed_bytes"`
	// Resized are kept and have another recorded size, or, with merged states, another end of what is needed.
	Resized int `json:"resized"`
}

// FileChange is a file that only one of both checkpoints needs.
type FileChange struct {
	Change Change `json:"change"`
	Path   string `json:"path"`
	// Bytes are -1 if unknown.
	Bytes int64 `json:"bytes"`
}

// Compare compares what two inspections say of the operators.
func Compare(from, to *Inspection) *Comparison {
	c := &Comparison{From: compared(from), To: compared(to), Operators: []OperatorChange{}, Changes: []FileChange{}}
	index := make(map[string]int, len(to.Operators))
	for i := range to.Operators {
		index[to.Operators[i].ID] = i
	}
	met := make([]bool, len(to.Operators))
	for i := range from.Operators {
		before := &from.Operators[i]
		if k, ok := index[before.ID]; ok && !met[k] {
			met[k] = true
			c.Operators = append(c.Operators, changeOf(before, &to.Operators[k]))
		} else {
			c.Operators = append(c.Operators, changeOf(before, nil))
		}
	}
	for k := range to.Operators {
		if !met[k] {
			c.Operators = append(c.Operators, changeOf(nil, &to.Operators[k]))
		}
	}
	return c
}

func compared(i *Inspection) Compared {
	return Compared{
		Pointer: i.Pointer, ID: i.ID, Version: i.Metadata.Version, StateBytes: i.Totals.StateBytes, NewBytes: i.Totals.NewBytes,
	}
}

// changeOf compares an operator with itself; one side may be nil.
func changeOf(from, to *Operator) OperatorChange {
	change, named := Changed, to
	switch {
	case from == nil:
		change, from = Added, &Operator{}
	case to == nil:
		change, named, to = Removed, from, &Operator{}
	}
	o := OperatorChange{
		ID: named.ID, UID: named.UID, Name: named.Name, Change: change, From: sideOf(from), To: sideOf(to),
		States: stateChanges(from.States, to.States), HandlesAdded: handlesOnlyIn(to, from), HandlesRemoved: handlesOnlyIn(from, to),
	}
	if change == Changed && o.From == o.To && len(o.States) == 0 && len(o.HandlesAdded) == 0 && len(o.HandlesRemoved) == 0 {
		o.Change = Same
	}
	return o
}

func sideOf(o *Operator) OperatorSide {
	return OperatorSide{
		Parallelism: o.Parallelism, MaxParallelism: o.MaxParallelism, Subtasks: o.SubtasksWithState + o.SubtasksFinished,
		FullyFinished: o.FullyFinished, StateBytes: o.StateBytes, NewBytes: o.NewBytes, Objects: o.Files.Objects, ObjectBytes: o.Files.Bytes,
	}
}

func handlesOnlyIn(o, other *Operator) []string {
	only := []string{}
	for _, g := range o.Handles {
		if !slices.ContainsFunc(other.Handles, func(h HandleGroup) bool { return h.Role == g.Role && h.Kind == g.Kind }) {
			only = append(only, string(g.Role)+" "+g.Kind)
		}
	}
	return only
}

func stateChanges(from, to []NamedState) []StateChange {
	changes := []StateChange{}
	find := func(list []NamedState, s NamedState) (NamedState, bool) {
		i := slices.IndexFunc(list, func(o NamedState) bool { return o.Name == s.Name && o.Role == s.Role })
		if i < 0 {
			return NamedState{}, false
		}
		return list[i], true
	}
	for _, before := range from {
		after, found := find(to, before)
		switch {
		case !found:
			changes = append(changes, StateChange{
				Name: before.Name, Role: before.Role, Change: Removed, FromMode: before.Mode, FromPartitions: before.Partitions,
			})
		case after != before:
			changes = append(changes, StateChange{
				Name: before.Name, Role: before.Role, Change: Changed, FromMode: before.Mode, ToMode: after.Mode,
				FromPartitions: before.Partitions, ToPartitions: after.Partitions,
			})
		}
	}
	for _, after := range to {
		if _, found := find(from, after); !found {
			changes = append(changes, StateChange{
				Name: after.Name, Role: after.Role, Change: Added, ToMode: after.Mode, ToPartitions: after.Partitions,
			})
		}
	}
	return changes
}

// Keep counts a file that both checkpoints need.
func (f *FileChanges) Keep(bytes int64, resized bool) {
	f.Kept++
	f.KeptBytes += max(0, bytes)
	if resized {
		f.Resized++
	}
}

// Differ counts a file that only one needs, and keeps it if there are fewer than most of its kind.
func (c *Comparison) Differ(change Change, path string, bytes int64, most int) {
	n := &c.Files.Added
	sum := &c.Files.AddedBytes
	if change == Removed {
		n, sum = &c.Files.Removed, &c.Files.RemovedBytes
	}
	*n++
	*sum += max(0, bytes)
	if *n <= most {
		c.Changes = append(c.Changes, FileChange{Change: change, Path: path, Bytes: bytes})
	}
}
