package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// newOperator begins an operator. What it is given is used again afterwards, so its texts are copied.
func newOperator(s *metadata.OperatorState, largest *largestStreams) Operator {
	o := Operator{
		ID: s.ID.String(), UID: strings.Clone(s.UID), Name: strings.Clone(s.Name), Parallelism: s.Parallelism, MaxParallelism: s.MaxParallelism,
		FullyFinished: s.FullyFinished, States: []NamedState{}, Handles: []HandleGroup{},
	}
	if s.Coordinator != nil {
		h := coordinatorHandle(s.Coordinator)
		size := h.bytes
		o.CoordinatorBytes = &size
		o.add(h)
		largest.add(&o, nil, h)
	}
	return o
}

func (o *Operator) addSubtask(s *metadata.Subtask, opts InspectOptions, largest *largestStreams) {
	index := s.Index
	subtask := Subtask{Index: index, Finished: s.Finished(), Handles: []SubtaskHandle{}}
	if s.Finished() {
		o.SubtasksFinished++
	} else {
		o.SubtasksWithState++
		o.addNames(s.State)
		for _, h := range handlesOf(s.State) {
			h.place(opts.Where)
			o.add(h)
			largest.add(o, &index, h)
			if opts.Subtasks {
				subtask.Handles = append(subtask.Handles, SubtaskHandle{
					Role: h.role, Kind: h.kind, StateBytes: h.bytes, NewBytes: h.newBytes, Streams: h.streams,
				})
			}
		}
	}
	if opts.Subtasks {
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
	s.Name = strings.Clone(s.Name)
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
		stream.Path = strings.Clone(stream.Path)
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
