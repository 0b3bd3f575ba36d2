package metadata

import "github.com/hdfsckpt/hdfsckpt/core"

func checksumsToJSON(c *core.Checksums) *checksumsJSON {
	if c == nil {
		return nil
	}
	return &checksumsJSON{ChunkSize: c.ChunkSize, Sums: c.Sums}
}

func streamToJSON(h core.StreamHandle, depth int) (*streamJSON, error) {
	if depth > maxDepth {
		return nil, invalid("more than %d handles inside each other", maxDepth)
	}
	switch h := h.(type) {
	case nil:
		return nil, nil
	case *core.BytesHandle:
		return &streamJSON{Kind: kindBytes, Name: textJSON(h.Name), Data: h.Data}, nil
	case *core.FileHandle:
		return &streamJSON{
			Kind: kindFile, Path: textJSON(h.Path), Size: h.Size, Checksums: checksumsToJSON(h.Checksums),
		}, nil
	case *core.RelativeFileHandle:
		return &streamJSON{
			Kind: kindRelativeFile, Dir: textJSON(h.Dir), Name: textJSON(h.Name), Size: h.Size,
			Checksums: checksumsToJSON(h.Checksums),
		}, nil
	case *SegmentHandle:
		return &streamJSON{
			Kind: kindSegment, Path: textJSON(h.Path), Offset: h.Offset, Size: h.Size, Scope: h.Scope,
			LogicalID: textJSON(h.LogicalID), Checksums: checksumsToJSON(h.Checksums),
		}, nil
	case EmptySegment:
		return &streamJSON{Kind: kindEmptySegment}, nil
	case *KeyGroupsHandle:
		inner, err := keyedToJSON(h, depth+1)
		return &streamJSON{Kind: kindKeyGroups, KeyGroups: inner}, err
	}
	return nil, invalid("%T is not a stream handle that the format has", h)
}

func operatorToJSON(h *OperatorHandle) (*operatorJSON, error) {
	if h == nil {
		return nil, nil
	}
	delegate, err := streamToJSON(h.Delegate, 0)
	if err != nil {
		return nil, err
	}
	w := &operatorJSON{Delegate: delegate}
	for _, s := range h.States {
		w.States = append(w.States, namedStateJSON{Name: textJSON(s.Name), Mode: s.Mode, Offsets: s.Offsets})
	}
	if m := h.Merging; m != nil {
		w.Merging = &mergingJSON{TaskOwnedDir: textJSON(m.TaskOwnedDir), SharedDir: textJSON(m.SharedDir), Empty: m.Empty}
	}
	return w, nil
}

func channelsToJSON(list []ChannelHandle) ([]channelJSON, error) {
	var wire []channelJSON
	for i := range list {
		w, err := channelToJSON(&list[i])
		if err != nil {
			return nil, err
		}
		wire = append(wire, w)
	}
	return wire, nil
}

func channelToJSON(h *ChannelHandle) (channelJSON, error) {
	delegate, err := streamToJSON(h.Delegate, 0)
	w := channelJSON{Subtask: h.Subtask, Merged: h.Merged, Size: h.Size, Delegate: delegate}
	for _, c := range h.Channels {
		w.Channels = append(w.Channels, channelPartJSON(c))
	}
	return w, err
}

func namedFilesToJSON(files []NamedFile, depth int) ([]namedFileJSON, error) {
	var wire []namedFileJSON
	for _, f := range files {
		h, err := streamToJSON(f.Handle, depth)
		if err != nil {
			return nil, err
		}
		wire = append(wire, namedFileJSON{LocalPath: textJSON(f.LocalPath), Handle: h})
	}
	return wire, nil
}

func keyedToJSON(h KeyedHandle, depth int) (*keyedJSON, error) {
	if depth > maxDepth {
		return nil, invalid("more than %d handles inside each other", maxDepth)
	}
	switch h := h.(type) {
	case *KeyGroupsHandle:
		delegate, err := streamToJSON(h.Delegate, depth+1)
		return &keyedJSON{
			Kind: kindKeyGroups, KeyGroups: h.Range, Layout: h.Layout, ID: textJSON(h.ID), Savepoint: h.Savepoint,
			Offsets: h.Offsets, Delegate: delegate,
		}, err
	case *IncrementalHandle:
		return incrementalToJSON(h, depth)
	case *ChangelogHandle:
		return changelogToJSON(h, depth)
	case *ChangelogBytesHandle:
		w := &keyedJSON{
			Kind: kindChangelogBytes, KeyGroups: h.Range, Layout: h.Layout, ID: textJSON(h.ID), From: h.From, To: h.To,
		}
		for _, c := range h.Changes {
			w.Changes = append(w.Changes, changeJSON(c))
		}
		return w, nil
	case *ChangelogFileHandle:
		w := &keyedJSON{
			Kind: kindChangelogFile, KeyGroups: h.Range, Layout: h.Layout, ID: textJSON(h.ID), Size: h.Size,
			PersistedSize: h.PersistedSize, Storage: textJSON(h.Storage),
		}
		for _, part := range h.Parts {
			handle, err := streamToJSON(part.Handle, depth+1)
			if err != nil {
				return nil, err
			}
			w.Parts = append(w.Parts, changePartJSON{Offset: part.Offset, Handle: handle})
		}
		return w, nil
	}
	return nil, nil
}

func incrementalToJSON(h *IncrementalHandle, depth int) (*keyedJSON, error) {
	w := &keyedJSON{
		Kind: kindIncremental, KeyGroups: h.Range, Layout: h.Layout, ID: textJSON(h.ID), CheckpointID: h.CheckpointID,
		BackendID: textJSON(h.BackendID), PersistedSize: h.PersistedSize,
	}
	var err error
	if w.Meta, err = streamToJSON(h.Meta, depth+1); err != nil {
		return nil, err
	}
	if w.Shared, err = namedFilesToJSON(h.Shared, depth+1); err != nil {
		return nil, err
	}
	w.Private, err = namedFilesToJSON(h.Private, depth+1)
	return w, err
}

func changelogToJSON(h *ChangelogHandle, depth int) (*keyedJSON, error) {
	w := &keyedJSON{
		Kind: kindChangelog, KeyGroups: h.Range, Layout: h.Layout, ID: textJSON(h.ID), CheckpointID: h.CheckpointID,
		PersistedSize: h.PersistedSize, MaterializationID: h.MaterializationID,
	}
	for _, part := range h.Materialized {
		inner, err := keyedToJSON(part, depth+1)
		if err != nil {
			return nil, err
		}
		w.Materialized = append(w.Materialized, inner)
	}
	for _, part := range h.Changes {
		inner, err := keyedToJSON(part, depth+1)
		if err != nil {
			return nil, err
		}
		w.NonMaterialized = append(w.NonMaterialized, inner)
	}
	return w, nil
}
