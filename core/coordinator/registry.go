package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// registry is what the coordinator knows of the files of its checkpoints: which checkpoints need a file, and the handles of
// shared states, so that a task can name one instead of sending it again. A checkpoint holds what it needs from its first
// acknowledgement until it is aborted or deleted, whatever happens to others; so a file that nothing holds is needed by no
// checkpoint that is complete or may become so. It decides only, and touches no storage. Coordinator.mu guards it.
type registry struct {
	holdings map[int64]*holding
	refs     map[string]int // by name: how many checkpoints hold it
	states   map[stateKey]*sharedState
	// unclaimed are checkpoints that belong to somebody else: they hold what they need for ever, and no other may refer to it.
	unclaimed map[int64]bool
	odd       error // a path that could not be understood: then not all that is needed is known
}

// holding is what one checkpoint needs.
type holding struct {
	names  map[string]bool
	states map[stateKey]bool
}

// stateKey identifies a shared state.
type stateKey struct {
	path   string // of the file, in the form of metadata.Resolve
	offset int64  // of a segment; -1 for a whole file
}

// sharedState is a state that checkpoints refer to.
type sharedState struct {
	handle  core.StreamHandle
	holders int
}

func newRegistry() *registry {
	return &registry{
		holdings: map[int64]*holding{}, refs: map[string]int{}, states: map[stateKey]*sharedState{}, unclaimed: map[int64]bool{},
	}
}

// hold enters that a checkpoint needs objects and shared states. Entering something again changes nothing.
func (r *registry) hold(id int64, objects []core.Object, handles []core.StreamHandle) {
	h := r.holdings[id]
	if h == nil {
		h = &holding{names: map[string]bool{}, states: map[stateKey]bool{}}
		r.holdings[id] = h
	}
	needed := core.NeededNames{}
	if err := needed.Add(objects); err != nil {
		r.odd = err
	}
	for name := range needed {
		if !h.names[name] {
			h.names[name] = true
			r.refs[name]++
		}
	}
	for _, handle := range handles {
		key, ok := keyOf(handle)
		if !ok || h.states[key] {
			continue
		}
		h.states[key] = true
		if r.states[key] == nil {
			r.states[key] = &sharedState{handle: handle}
		}
		r.states[key].holders++
	}
}

// release enters that a checkpoint does not exist any more. The order in which checkpoints are released does not matter.
func (r *registry) release(id int64) {
	h := r.holdings[id]
	if h == nil {
		return
	}
	delete(r.holdings, id)
	for name := range h.names {
		if r.refs[name]--; r.refs[name] == 0 {
			delete(r.refs, name)
		}
	}
	for key := range h.states {
		if r.states[key].holders--; r.states[key].holders == 0 {
			delete(r.states, key)
		}
	}
}

// needs reports whether any checkpoint needs the file with the name. A directory stands for everything below it.
func (r *registry) needs(name string) bool {
	for ; ; name = path.Dir(name) {
		if r.refs[name] > 0 {
			return true
		}
		if name == "/" || name == "." {
			return false
		}
	}
}

// unneeded returns the paths of those files, each once, that no checkpoint needs, nor what is inherited. It returns nothing if it
// is not known completely what is needed.
func (r *registry) unneeded(objects, inherited []core.Object) []string {
	others := core.NeededNames{}
	if r.odd != nil || others.Add(inherited) != nil {
		return nil
	}
	var paths []string
	planned := map[string]bool{}
	for i := range objects {
		qualified := objects[i].Path
		_, name, err := core.SplitQualified(qualified)
		if err != nil || objects[i].Directory || r.needs(name) || others.Cover(name) || planned[qualified] {
			continue
		}
		planned[qualified] = true
		paths = append(paths, qualified)
	}
	return paths
}

// keyOf returns what identifies a shared state, and false for a handle that is none: one that is inline, relative or exclusive.
func keyOf(handle core.StreamHandle) (stateKey, bool) {
	key := stateKey{offset: -1}
	switch h := handle.(type) {
	case *core.FileHandle:
	case *core.SegmentHandle:
		if h.Scope != core.Shared {
			return key, false
		}
		key.offset = h.Offset
	default:
		return key, false
	}
	var err error
	key.path, err = metadata.Resolve(handle)
	return key, err == nil
}

// errUnknownState: a task refers to a state that its checkpoint's base does not have.
var errUnknownState = errors.New("is not a part of the base of this checkpoint; write it again")

// admit returns the handle under which a checkpoint with a base refers to a state: for a placeholder, and for a state that is
// known, the handle that was registered first.
func (r *registry) admit(id, base int64, handle core.StreamHandle) (core.StreamHandle, error) {
	key, ok := keyOf(handle)
	if !ok {
		return handle, nil
	}
	known := r.states[key]
	if core.IsPlaceholder(handle) {
		if known == nil || !r.holds(base, key) && !r.holds(id, key) {
			return nil, fmt.Errorf("%s %w", key, errUnknownState)
		}
		return known.handle, nil
	}
	if known == nil {
		return handle, nil
	}
	if problem := differ(known.handle, handle); problem != "" {
		return nil, fmt.Errorf("%s %s", key, problem)
	}
	return known.handle, nil
}

// lent returns the path of an object that only checkpoints of somebody else hold, "" if there is none.
func (r *registry) lent(objects []core.Object) string {
	if len(r.unclaimed) == 0 {
		return ""
	}
	for i := range objects {
		_, name, err := core.SplitQualified(objects[i].Path)
		holders := 0
		for id := range r.unclaimed {
			if h := r.holdings[id]; err == nil && h != nil && h.names[name] {
				holders++
			}
		}
		if holders > 0 && holders == r.refs[name] {
			return objects[i].Path
		}
	}
	return ""
}

func (r *registry) holds(id int64, key stateKey) bool {
	h := r.holdings[id]
	return h != nil && h.states[key]
}

// String is the path, with the offset of a segment.
func (k stateKey) String() string {
	if k.offset < 0 {
		return k.path
	}
	return fmt.Sprintf("%s at %d", k.path, k.offset)
}

// differ says how two handles of one state contradict each other, "" if they do not.
func differ(a, b core.StreamHandle) string {
	if a.StateSize() != b.StateSize() && a.StateSize() >= 0 {
		return fmt.Sprintf("has %d bytes, and was known with %d", b.StateSize(), a.StateSize())
	}
	first, second := checksumsOf(a), checksumsOf(b)
	if first == nil || second == nil || first == second {
		return ""
	}
	if first.ChunkSize != second.ChunkSize || !slices.Equal(first.Sums, second.Sums) {
		return "has other checksums than it was known with: a published file is never changed"
	}
	return ""
}

func checksumsOf(handle core.StreamHandle) *core.Checksums {
	switch h := handle.(type) {
	case *core.FileHandle:
		return h.Checksums
	case *core.SegmentHandle:
		return h.Checksums
	}
	return nil
}

// protected returns everything that checkpoints need, those in without excepted.
func (r *registry) protected(uri string, without map[int64]bool) []core.Object {
	var objects []core.Object
	added := map[string]bool{}
	for id, h := range r.holdings {
		if without[id] {
			continue
		}
		for name := range h.names {
			if !added[name] {
				added[name] = true
				objects = append(objects, core.Object{Path: core.Qualify(uri, name), Size: -1})
			}
		}
	}
	slices.SortFunc(objects, func(a, b core.Object) int { return cmp.Compare(a.Path, b.Path) })
	return objects
}
