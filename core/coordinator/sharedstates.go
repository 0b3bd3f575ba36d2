package coordinator

import (
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// streamFunc gives the handle to use in the place of another.
type streamFunc func(core.StreamHandle) (core.StreamHandle, error)

// mapState returns a copy of a task's state in which every handle that can refer to shared state is what f makes of it: those in
// keyed state, files of changes included. What does not change is not copied.
func mapState(s *metadata.SubtaskState, f streamFunc) (*metadata.SubtaskState, error) {
	mapped := *s
	var err error
	if mapped.ManagedKeyed, err = mapKeyed(s.ManagedKeyed, f, 0); err != nil {
		return nil, err
	}
	if mapped.RawKeyed, err = mapKeyed(s.RawKeyed, f, 0); err != nil {
		return nil, err
	}
	return &mapped, nil
}

// maxNesting is how many keyed handles inside each other are looked into. Package metadata refuses what has more.
const maxNesting = 200

func mapKeyed(handle metadata.KeyedHandle, f streamFunc, depth int) (metadata.KeyedHandle, error) {
	if depth > maxNesting {
		return handle, nil
	}
	switch h := handle.(type) {
	case *metadata.KeyGroupsHandle:
		delegate, err := f(h.Delegate)
		if err != nil || delegate == h.Delegate {
			return handle, err
		}
		mapped := *h
		mapped.Delegate = delegate
		return &mapped, nil
	case *metadata.IncrementalHandle:
		return mapIncremental(h, f)
	case *metadata.ChangelogHandle:
		mapped := *h
		var err error
		if mapped.Materialized, err = mapAllKeyed(h.Materialized, f, depth+1); err != nil {
			return nil, err
		}
		if mapped.Changes, err = mapAllKeyed(h.Changes, f, depth+1); err != nil {
			return nil, err
		}
		return &mapped, nil
	case *metadata.ChangelogFileHandle:
		mapped := *h
		mapped.Parts = append([]metadata.ChangelogPart(nil), h.Parts...)
		for i := range mapped.Parts {
			var err error
			if mapped.Parts[i].Handle, err = f(h.Parts[i].Handle); err != nil {
				return nil, err
			}
		}
		return &mapped, nil
	}
	return handle, nil
}

func mapAllKeyed(handles []metadata.KeyedHandle, f streamFunc, depth int) ([]metadata.KeyedHandle, error) {
	if handles == nil {
		return nil, nil
	}
	mapped := make([]metadata.KeyedHandle, len(handles))
	for i := range handles {
		var err error
		if mapped[i], err = mapKeyed(handles[i], f, depth); err != nil {
			return nil, err
		}
	}
	return mapped, nil
}

func mapIncremental(h *metadata.IncrementalHandle, f streamFunc) (metadata.KeyedHandle, error) {
	mapped := *h
	var err error
	if mapped.Meta, err = f(h.Meta); err != nil {
		return nil, err
	}
	for _, list := range []*[]metadata.NamedFile{&mapped.Shared, &mapped.Private} {
		files := append([]metadata.NamedFile(nil), *list...)
		for i := range files {
			if files[i].Handle, err = f(files[i].Handle); err != nil {
				return nil, fmt.Errorf("%q: %w", files[i].LocalPath, err)
			}
		}
		*list = files
	}
	return &mapped, nil
}

// statesOf returns the handles of a task's keyed state.
func statesOf(s *metadata.SubtaskState) []core.StreamHandle {
	var handles []core.StreamHandle
	_, _ = mapState(s, func(h core.StreamHandle) (core.StreamHandle, error) { // f fails for none
		handles = append(handles, h)
		return h, nil
	})
	return handles
}

// statesOfAll returns the handles of a checkpoint's keyed state.
func statesOfAll(c *metadata.Checkpoint) []core.StreamHandle {
	var handles []core.StreamHandle
	for i := range c.Operators {
		for _, subtask := range c.Operators[i].Subtasks {
			if subtask.State != nil {
				handles = append(handles, statesOf(subtask.State)...)
			}
		}
	}
	return handles
}
