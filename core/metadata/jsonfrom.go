package metadata

import (
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func (w *stateJSON) state() (*SubtaskState, error) {
	var s SubtaskState
	var err error
	if s.ManagedOperator, err = w.ManagedOperator.handle(); err != nil {
		return nil, err
	}
	if s.RawOperator, err = w.RawOperator.handle(); err != nil {
		return nil, err
	}
	if s.ManagedKeyed, err = w.ManagedKeyed.handle(); err != nil {
		return nil, err
	}
	if s.RawKeyed, err = w.RawKeyed.handle(); err != nil {
		return nil, err
	}
	if s.InputChannels, err = channelsFromJSON(w.InputChannels); err != nil {
		return nil, err
	}
	if s.ResultSubpartitions, err = channelsFromJSON(w.ResultSubpartitions); err != nil {
		return nil, err
	}
	return &s, nil
}

func (w *checksumsJSON) checksums() *core.Checksums {
	if w == nil {
		return nil
	}
	return &core.Checksums{ChunkSize: w.ChunkSize, Sums: w.Sums}
}

func (w *streamJSON) handle() (core.StreamHandle, error) {
	if w == nil {
		return nil, nil
	}
	switch w.Kind {
	case kindBytes:
		return &core.BytesHandle{Name: string(w.Name), Data: w.Data}, nil
	case kindFile:
		return &core.FileHandle{Path: string(w.Path), Size: w.Size, Checksums: w.Checksums.checksums()}, nil
	case kindRelativeFile:
		return &core.RelativeFileHandle{
			Dir: string(w.Dir), Name: string(w.Name), Size: w.Size, Checksums: w.Checksums.checksums(),
		}, nil
	case kindSegment:
		return &SegmentHandle{
			Path: string(w.Path), Offset: w.Offset, Size: w.Size, Scope: w.Scope, LogicalID: string(w.LogicalID),
			Checksums: w.Checksums.checksums(),
		}, nil
	case kindEmptySegment:
		return EmptySegment{}, nil
	case kindKeyGroups:
		h, err := w.KeyGroups.handle()
		if err != nil {
			return nil, err
		}
		if nested, ok := h.(*KeyGroupsHandle); ok {
			return nested, nil
		}
		return nil, fmt.Errorf("%w: a stream handle of kind %q has no key groups", core.ErrCorrupt, w.Kind)
	}
	return nil, fmt.Errorf("%w: there is no stream handle of kind %.100q", core.ErrCorrupt, w.Kind)
}

func (w *operatorJSON) handle() (*OperatorHandle, error) {
	if w == nil {
		return nil, nil
	}
	delegate, err := w.Delegate.handle()
	if err != nil {
		return nil, err
	}
	h := &OperatorHandle{Delegate: delegate}
	for _, s := range w.States {
		h.States = append(h.States, NamedState{Name: string(s.Name), Mode: s.Mode, Offsets: s.Offsets})
	}
	if m := w.Merging; m != nil {
		h.Merging = &Merging{TaskOwnedDir: string(m.TaskOwnedDir), SharedDir: string(m.SharedDir), Empty: m.Empty}
	}
	return h, nil
}

func channelsFromJSON(wire []channelJSON) ([]ChannelHandle, error) {
	var list []ChannelHandle
	for i := range wire {
		h, err := wire[i].handle()
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

func (w *channelJSON) handle() (ChannelHandle, error) {
	delegate, err := w.Delegate.handle()
	h := ChannelHandle{Subtask: w.Subtask, Merged: w.Merged, Size: w.Size, Delegate: delegate}
	for _, c := range w.Channels {
		h.Channels = append(h.Channels, Channel(c))
	}
	return h, err
}

func namedFilesFromJSON(wire []namedFileJSON) ([]NamedFile, error) {
	var files []NamedFile
	for _, w := range wire {
		h, err := w.Handle.handle()
		if err != nil {
			return nil, err
		}
		files = append(files, NamedFile{LocalPath: string(w.LocalPath), Handle: h})
	}
	return files, nil
}

func (w *keyedJSON) handle() (KeyedHandle, error) {
	if w == nil {
		return nil, nil
	}
	switch w.Kind {
	case kindKeyGroups:
		delegate, err := w.Delegate.handle()
		if err != nil {
			return nil, err
		}
		return &KeyGroupsHandle{
			Range: w.KeyGroups, Offsets: w.Offsets, Delegate: delegate, ID: string(w.ID), Savepoint: w.Savepoint,
			Layout: w.Layout,
		}, nil
	case kindIncremental:
		return w.incremental()
	case kindChangelog:
		return w.changelog()
	case kindChangelogBytes:
		h := &ChangelogBytesHandle{Range: w.KeyGroups, From: w.From, To: w.To, ID: string(w.ID), Layout: w.Layout}
		for _, c := range w.Changes {
			h.Changes = append(h.Changes, StateChange(c))
		}
		return h, nil
	case kindChangelogFile:
		return w.changelogFile()
	}
	return nil, fmt.Errorf("%w: there is no keyed handle of kind %.100q", core.ErrCorrupt, w.Kind)
}

func (w *keyedJSON) incremental() (KeyedHandle, error) {
	meta, err := w.Meta.handle()
	if err != nil {
		return nil, err
	}
	h := &IncrementalHandle{
		CheckpointID: w.CheckpointID, BackendID: string(w.BackendID), Range: w.KeyGroups, PersistedSize: w.PersistedSize,
		Meta: meta, ID: string(w.ID), Layout: w.Layout,
	}
	if h.Shared, err = namedFilesFromJSON(w.Shared); err != nil {
		return nil, err
	}
	if h.Private, err = namedFilesFromJSON(w.Private); err != nil {
		return nil, err
	}
	return h, nil
}

func (w *keyedJSON) changelog() (KeyedHandle, error) {
	h := &ChangelogHandle{
		Range: w.KeyGroups, PersistedSize: w.PersistedSize, MaterializationID: w.MaterializationID,
		CheckpointID: w.CheckpointID, ID: string(w.ID), Layout: w.Layout,
	}
	for _, part := range w.Materialized {
		inner, err := part.handle()
		if err != nil {
			return nil, err
		}
		h.Materialized = append(h.Materialized, inner)
	}
	for _, part := range w.NonMaterialized {
		inner, err := part.handle()
		if err != nil {
			return nil, err
		}
		h.Changes = append(h.Changes, inner)
	}
	return h, nil
}

func (w *keyedJSON) changelogFile() (KeyedHandle, error) {
	h := &ChangelogFileHandle{
		Range: w.KeyGroups, Size: w.Size, PersistedSize: w.PersistedSize, ID: string(w.ID), Storage: string(w.Storage),
		Layout: w.Layout,
	}
	for _, part := range w.Parts {
		handle, err := part.Handle.handle()
		if err != nil {
			return nil, err
		}
		h.Parts = append(h.Parts, ChangelogPart{Offset: part.Offset, Handle: handle})
	}
	return h, nil
}
