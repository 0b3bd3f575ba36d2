package report

import (
	"cmp"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func inspectOperator(s *metadata.OperatorState, withSubtasks bool, largest *largestStreams) Operator {
	o := Operator{
		ID: s.ID.String(), UID: s.UID, Name: s.Name, Parallelism: s.Parallelism, MaxParallelism: s.MaxParallelism,
		FullyFinished: s.FullyFinished, States: []NamedState{}, Handles: []HandleGroup{},
	}
	if s.Coordinator != nil {
		h := coordinatorHandle(s.Coordinator)
		o.CoordinatorBytes = &h.bytes
		o.add(h)
		largest.add(&o, nil, h)
	}
	for i := range s.Subtasks {
		o.addSubtask(&s.Subtasks[i], withSubtasks, largest)
	}
	return o
}

func (o *Operator) addSubtask(s *metadata.Subtask, listed bool, largest *largestStreams) {
	subtask := Subtask{Index: s.Index, Finished: s.Finished(), Handles: []SubtaskHandle{}}
	if s.Finished() {
		o.SubtasksFinished++
	} else {
		o.SubtasksWithState++
		o.addNames(s.State)
		for _, h := range handlesOf(s.State) {
			o.add(h)
			largest.add(o, &s.Index, h)
			if listed {
				subtask.Handles = append(subtask.Handles, SubtaskHandle{
					Role: h.role, Kind: h.kind, StateBytes: h.bytes, NewBytes: h.newBytes, Streams: h.streams,
				})
			}
		}
	}
	if listed {
		o.Subtasks = append(o.Subtasks, subtask)
	}
}

func (o *Operator) add(h handle) {
	// A size of -1 is not known; it must not make the sum smaller.
	size, written := max(0, h.bytes), max(0, h.newBytes)
	o.StateBytes += size
	o.NewBytes += written
	i := slices.IndexFunc(o.Handles, func(g HandleGroup) bool { return g.Role == h.role && g.Kind == h.kind })
	if i < 0 {
		i = len(o.Handles)
		o.Handles = append(o.Handles, HandleGroup{Role: h.role, Kind: h.kind, Streams: []StreamGroup{}})
	}
	group := &o.Handles[i]
	group.Count++
	group.StateBytes += size
	group.NewBytes += written
	for _, stream := range h.streams {
		group.addStream(stream)
	}
}

func (g *HandleGroup) addStream(s Stream) {
	i := slices.IndexFunc(g.Streams, func(sg StreamGroup) bool { return sg.Storage == s.Storage })
	if i < 0 {
		i = len(g.Streams)
		g.Streams = append(g.Streams, StreamGroup{Storage: s.Storage})
	}
	g.Streams[i].Count++
	g.Streams[i].Bytes += max(0, s.Bytes)
}

// addNames counts the parts of the named operator states.
func (o *Operator) addNames(s *metadata.SubtaskState) {
	for _, part := range []struct {
		role Role
		h    *metadata.OperatorHandle
	}{{ManagedOperator, s.ManagedOperator}, {RawOperator, s.RawOperator}} {
		if part.h == nil {
			continue
		}
		for i := range part.h.States {
			state := &part.h.States[i]
			o.addName(NamedState{Name: state.Name, Role: part.role, Mode: state.Mode.String(), Partitions: len(state.Offsets)})
		}
	}
}

func (o *Operator) addName(s NamedState) {
	for i := range o.States {
		known := &o.States[i]
		if known.Name == s.Name && known.Role == s.Role && known.Mode == s.Mode {
			known.Partitions += s.Partitions
			return
		}
	}
	o.States = append(o.States, s)
}

// largestStreams keeps the n largest streams of all that it is given, a file or segment that several handles share once.
type largestStreams struct {
	n     int
	items []Large // in descending order
}

func newLargest(n int) *largestStreams { return &largestStreams{n: n} }

func (l *largestStreams) add(o *Operator, subtask *int, h handle) {
	for _, stream := range h.streams {
		if stream.Bytes <= 0 || len(l.items) == l.n && (l.n == 0 || stream.Bytes <= l.items[l.n-1].Bytes) {
			continue
		}
		if stream.Path != "" && slices.ContainsFunc(l.items, func(known Large) bool { return known.Stream == stream }) {
			continue
		}
		item := Large{Stream: stream, OperatorID: o.ID, Operator: o.Name, Subtask: subtask, Role: h.role}
		at, _ := slices.BinarySearchFunc(l.items, item, func(a, b Large) int {
			// Behind those of equal size, so that the order is that of the file.
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), -1)
		})
		l.items = slices.Insert(l.items, at, item)
		l.items = l.items[:min(len(l.items), l.n)]
	}
}

func (l *largestStreams) sorted() []Large {
	if l.items == nil {
		return []Large{}
	}
	return l.items
}
