package report

import (
	"time"

	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// Inspection is the result of inspect.
type Inspection struct {
	Pointer  string       `json:"pointer"`
	Metadata MetadataFile `json:"metadata"`
	ID       int64        `json:"id"`
	// Footer is null for files of Flink.
	Footer *Footer `json:"footer"`
	// Properties are null where the file has none: below version 4.
	Properties   *Properties   `json:"properties"`
	Totals       Totals        `json:"totals"`
	MasterStates []MasterState `json:"master_states"`
	Operators    []Operator    `json:"operators"`
	// Largest are the largest streams, in descending order.
	Largest []Large `json:"largest"`
}

// MetadataFile is the file that was read.
type MetadataFile struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Version int    `json:"version"`
	// Checksum: the file holds a checksum of itself, and that is right.
	Checksum bool `json:"checksum"`
}

// Footer is what this project records beside what Flink does.
type Footer struct {
	Created    time.Time `json:"created"`
	Kind       string    `json:"kind"`
	Durability string    `json:"durability"`
}

// Properties say what Flink does with the checkpoint, and which kind of snapshot it is.
type Properties struct {
	// Null: the file has a null in their place; nothing else is set then.
	Null      bool     `json:"null"`
	Type      string   `json:"type,omitempty"`
	Sharing   string   `json:"sharing,omitempty"`
	Format    string   `json:"format,omitempty"`
	Action    string   `json:"action,omitempty"`
	Forced    bool     `json:"forced"`
	Unclaimed bool     `json:"unclaimed"`
	DiscardOn []string `json:"discard_on"`
}

// Totals of a checkpoint.
type Totals struct {
	Operators int `json:"operators"`
	Subtasks  int `json:"subtasks"`
	// StateBytes is the size of all state, NewBytes of that only what was written for this checkpoint.
	StateBytes int64 `json:"state_bytes"`
	NewBytes   int64 `json:"new_bytes"`
	// Inline state is in the metadata.
	InlineBytes int64 `json:"inline_bytes"`
	// The files that the checkpoint needs.
	Inventory
}

// MasterState is the state of a hook of Flink's job master.
type MasterState struct {
	Name    string `json:"name"`
	Version int32  `json:"version"`
	Bytes   int    `json:"bytes"`
}

// Operator is the state of an operator.
type Operator struct {
	ID             string `json:"id"`
	UID            string `json:"uid,omitempty"`
	Name           string `json:"name,omitempty"`
	Parallelism    int    `json:"parallelism"`
	MaxParallelism int    `json:"max_parallelism"`
	FullyFinished  bool   `json:"fully_finished"`
	// SubtasksWithState and SubtasksFinished count what the metadata holds; subtasks without state may be left out there.
	SubtasksWithState int `json:"subtasks_with_state"`
	SubtasksFinished  int `json:"subtasks_finished"`
	// CoordinatorBytes is null for an operator without coordinator state.
	CoordinatorBytes *int64 `json:"coordinator_bytes"`
	StateBytes       int64  `json:"state_bytes"`
	NewBytes         int64  `json:"new_bytes"`
	// States are the named operator states. The names of keyed states are inside of the state files.
	States []NamedState `json:"states"`
	// Files are those that this operator is the first to name.
	Files   Inventory     `json:"files"`
	Handles []HandleGroup `json:"handles"`
	// Subtasks are there if they were asked for.
	Subtasks []Subtask `json:"subtasks,omitempty"`
}

// NamedState is an operator state of all subtasks together.
type NamedState struct {
	Name       string `json:"name"`
	Role       Role   `json:"role"`
	Mode       string `json:"mode"`
	Partitions int    `json:"partitions"`
}

// HandleGroup sums up the handles of one role and kind.
type HandleGroup struct {
	Role       Role   `json:"role"`
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
	StateBytes int64  `json:"state_bytes"`
	NewBytes   int64  `json:"new_bytes"`
	// Streams counts and adds up the streams of each storage.
	Streams []StreamGroup `json:"streams"`
}

// StreamGroup sums up the streams of one storage.
type StreamGroup struct {
	Storage Storage `json:"storage"`
	Count   int     `json:"count"`
	Bytes   int64   `json:"bytes"`
}

// Subtask is the state of one subtask.
type Subtask struct {
	Index    int             `json:"index"`
	Finished bool            `json:"finished"`
	Handles  []SubtaskHandle `json:"handles"`
}

// SubtaskHandle is one handle with its streams.
type SubtaskHandle struct {
	Role       Role     `json:"role"`
	Kind       string   `json:"kind"`
	StateBytes int64    `json:"state_bytes"`
	NewBytes   int64    `json:"new_bytes"`
	Streams    []Stream `json:"streams"`
}

// Large is a large stream and whose it is.
type Large struct {
	Stream
	OperatorID string `json:"operator_id"`
	Operator   string `json:"operator,omitempty"`
	// Subtask is null for the state of a coordinator.
	Subtask *int `json:"subtask"`
	Role    Role `json:"role"`
}

// InspectOptions say how much is reported.
type InspectOptions struct {
	// Subtasks: every subtask is listed.
	Subtasks bool
	// Largest is how many of the largest streams are listed.
	Largest int
	// Where returns where the file of a recorded absolute path is; nil for trees that were not moved.
	Where func(path string) string
}

// Inspector makes an inspection while the metadata is read.
type Inspector struct {
	opts    InspectOptions
	result  Inspection
	largest *largestStreams
}

// NewInspector begins an inspection.
func NewInspector(opts InspectOptions) *Inspector {
	return &Inspector{opts: opts, result: Inspection{Operators: []Operator{}}, largest: newLargest(opts.Largest)}
}

// Visitor is to be told what is read.
func (in *Inspector) Visitor() metadata.Visitor {
	return metadata.Visitor{
		Operator: func(_ int, o *metadata.OperatorState) error {
			in.result.Operators = append(in.result.Operators, newOperator(o, in.largest))
			return nil
		},
		Subtask: func(s *metadata.Subtask) error {
			in.result.Operators[len(in.result.Operators)-1].addSubtask(s, in.opts, in.largest)
			return nil
		},
	}
}

// Finish returns what the metadata of a checkpoint says, once it has been read to the end.
func (in *Inspector) Finish(pointer string, file MetadataFile, inv *metadata.Inventory) *Inspection {
	i, c := &in.result, inv.Checkpoint
	file.Version, file.Checksum = c.Version, c.Footer != nil
	i.Pointer, i.Metadata, i.ID = pointer, file, c.ID
	i.Footer, i.Properties = newFooter(c.Footer), newProperties(c.Properties)
	i.MasterStates = []MasterState{}
	for _, m := range c.MasterStates {
		i.MasterStates = append(i.MasterStates, MasterState{Name: m.Name, Version: m.Version, Bytes: len(m.Data)})
	}
	for k := range i.Operators {
		i.Operators[k].Files = NewInventory(inv.Operators[k].FileTotals)
		i.Totals.addOperator(&i.Operators[k])
	}
	i.Largest = in.largest.sorted()
	i.Totals.Inventory = NewInventory(inv.Files)
	return i
}

func newFooter(f *metadata.Footer) *Footer {
	if f == nil {
		return nil
	}
	return &Footer{Created: f.Created, Kind: f.Kind.String(), Durability: f.Durability.String()}
}

func newProperties(p *metadata.Properties) *Properties {
	if p == nil {
		return nil
	}
	r := &Properties{
		Null: p.Null, Type: p.Type.Name, Sharing: p.Type.Sharing, Format: p.Type.Format, Action: p.Type.Action,
		Forced: p.Forced, Unclaimed: p.Unclaimed, DiscardOn: []string{},
	}
	for _, event := range []struct {
		name string
		set  bool
	}{
		{"subsumed", p.DiscardSubsumed},
		{"finished", p.DiscardFinished},
		{"cancelled", p.DiscardCancelled},
		{"failed", p.DiscardFailed},
		{"suspended", p.DiscardSuspended},
	} {
		if event.set {
			r.DiscardOn = append(r.DiscardOn, event.name)
		}
	}
	return r
}

func (t *Totals) addOperator(o *Operator) {
	t.Operators++
	t.Subtasks += o.SubtasksWithState + o.SubtasksFinished
	t.StateBytes += o.StateBytes
	t.NewBytes += o.NewBytes
	for _, group := range o.Handles {
		for _, streams := range group.Streams {
			if streams.Storage == Inline {
				t.InlineBytes += streams.Bytes
			}
		}
	}
}
