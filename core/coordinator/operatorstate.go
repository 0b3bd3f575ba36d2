package coordinator

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf16"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// OperatorPart is operator state that a subtask takes over from one subtask of before.
type OperatorPart struct {
	// Delegate holds the bytes.
	Delegate core.StreamHandle
	// States are those that the subtask takes over, with the offsets of its parts of each. Others that the bytes hold are for
	// other subtasks.
	States []metadata.NamedState
	// Raw state was not written by a state backend.
	Raw bool
}

// OperatorParts returns the operator state that a subtask takes over when the operator has the given parallelism now. It is
// dealt out as Flink does (RoundRobinOperatorStateRepartitioner):
//
//   - SplitDistribute: at the same parallelism each subtask keeps its own parts; at another one the parts of all are dealt
//     out evenly and in order.
//   - Union: every subtask gets the parts of all.
//   - Broadcast: every subtask gets the state once, its own if it has one, else that of another subtask.
//
// Without state there are none. The error is fs.ErrInvalid for a subtask that cannot be.
func (r *Restored) OperatorParts(operator metadata.OperatorID, parallelism, subtask int) ([]OperatorPart, error) {
	if err := checkSubtask(parallelism, subtask); err != nil {
		return nil, fmt.Errorf("operator %s: %w", operator, err)
	}
	state, ok := r.Operator(operator)
	if !ok {
		return nil, nil
	}
	managed := func(s *metadata.SubtaskState) *metadata.OperatorHandle { return s.ManagedOperator }
	raw := func(s *metadata.SubtaskState) *metadata.OperatorHandle { return s.RawOperator }
	parts := dealOut(state, managed, parallelism)[subtask]
	for _, part := range dealOut(state, raw, parallelism)[subtask] {
		part.Raw = true
		parts = append(parts, part)
	}
	return parts, nil
}

// source is one named state in the handle of one subtask of before.
type source struct {
	subtask  int
	delegate core.StreamHandle
	state    metadata.NamedState
}

// dealOut returns what each of the new subtasks gets.
func dealOut(
	state *metadata.OperatorState, choose func(*metadata.SubtaskState) *metadata.OperatorHandle, parallelism int,
) [][]OperatorPart {
	byName := map[metadata.Mode]map[string][]source{metadata.SplitDistribute: {}, metadata.Union: {}, metadata.Broadcast: {}}
	names := map[metadata.Mode][]string{}
	for _, old := range state.Subtasks {
		if old.State == nil || choose(old.State) == nil {
			continue
		}
		handle := choose(old.State)
		for _, named := range handle.States {
			sources, known := byName[named.Mode]
			if !known {
				continue // the format has no other modes
			}
			if len(sources[named.Name]) == 0 {
				names[named.Mode] = append(names[named.Mode], named.Name)
			}
			sources[named.Name] = append(sources[named.Name], source{subtask: old.Index, delegate: handle.Delegate, state: named})
		}
	}
	deal := newDeal(parallelism)
	split := names[metadata.SplitDistribute]
	sortLikeGrownHashMap(split)
	if parallelism == state.Parallelism {
		for _, name := range split {
			for _, s := range byName[metadata.SplitDistribute][name] {
				deal.give(s.subtask, s, s.state.Offsets)
			}
		}
	} else {
		first := 0
		for _, name := range split {
			first = deal.split(byName[metadata.SplitDistribute][name], first)
		}
	}
	for _, name := range names[metadata.Union] {
		deal.union(byName[metadata.Union][name])
	}
	for _, name := range names[metadata.Broadcast] {
		deal.broadcast(byName[metadata.Broadcast][name], parallelism == state.Parallelism)
	}
	return deal.parts
}

// deal gathers what new subtasks get, one part for each old subtask that it comes from.
type deal struct {
	parts [][]OperatorPart
	from  []map[int]int // of each new subtask: the position of the part that comes from an old one
}

func newDeal(parallelism int) *deal {
	d := &deal{parts: make([][]OperatorPart, parallelism), from: make([]map[int]int, parallelism)}
	for i := range d.from {
		d.from[i] = map[int]int{}
	}
	return d
}

func (d *deal) give(subtask int, s source, offsets []int64) {
	if subtask < 0 || subtask >= len(d.parts) {
		return // Parse admits no index beyond the parallelism
	}
	at, known := d.from[subtask][s.subtask]
	if !known {
		at = len(d.parts[subtask])
		d.from[subtask][s.subtask] = at
		d.parts[subtask] = append(d.parts[subtask], OperatorPart{Delegate: s.delegate})
	}
	part := &d.parts[subtask][at]
	part.States = append(part.States, metadata.NamedState{Name: s.state.Name, Mode: s.state.Mode, Offsets: offsets})
}

// split deals the parts of one state out, beginning with the subtask first. It returns the subtask at which the next state
// begins, so that the subtasks which get one part more take turns.
func (d *deal) split(sources []source, first int) int {
	total := 0
	for _, s := range sources {
		total += len(s.state.Offsets)
	}
	parallelism := len(d.parts)
	share, rest := total/parallelism, total%parallelism
	at, used := 0, 0 // in sources, and in the offsets of the current one
	for i := range parallelism {
		subtask := (first + i) % parallelism
		want := share
		if i < rest {
			want++
		}
		for want > 0 {
			offsets := sources[at].state.Offsets[used:]
			n := min(want, len(offsets))
			if n > 0 {
				d.give(subtask, sources[at], offsets[:n])
			}
			want -= n
			used += n
			if used == len(sources[at].state.Offsets) {
				at, used = at+1, 0
			}
		}
	}
	return (first + rest) % parallelism
}

func (d *deal) union(sources []source) {
	for subtask := range d.parts {
		for _, s := range sources {
			d.give(subtask, s, s.state.Offsets)
		}
	}
}

func (d *deal) broadcast(sources []source, own bool) {
	for subtask := range d.parts {
		s := sources[subtask%len(sources)]
		if own {
			if i := slices.IndexFunc(sources, func(s source) bool { return s.subtask == subtask }); i >= 0 {
				s = sources[i]
			}
		}
		d.give(subtask, s, s.state.Offsets)
	}
}

// sortLikeGrownHashMap puts names into the order in which a java.util.HashMap yields them that was filled one by one with
// computeIfAbsent, which puts a name in front of those in its bucket and grows the map one name later than put does. Flink
// deals the states out in that order, and so the order decides which subtask gets a part more.
func sortLikeGrownHashMap(names []string) {
	capacity := 16
	for len(names)-1 > capacity/4*3 {
		capacity *= 2
	}
	bucket := func(name string) uint32 {
		var hash uint32
		for _, unit := range utf16.Encode([]rune(name)) {
			hash = 31*hash + uint32(unit)
		}
		return (hash ^ hash>>16) & uint32(capacity-1)
	}
	slices.Reverse(names)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(bucket(a), bucket(b)) })
}
