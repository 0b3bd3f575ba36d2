package sparkckpt

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// Change says what a version did to a key.
type Change string

// The changes. A put of the value that the key had already is Unchanged.
const (
	Added        Change = "added"
	Changed      Change = "changed"
	Removed      Change = "removed"
	Unchanged    Change = "unchanged"
	StillAbsent  Change = "absent"
	FirstKnown   Change = "present" // in the oldest version that can be loaded
	UnknownState Change = "unknown" // the version cannot be loaded
)

// Event is one version in the history of a store.
type Event struct {
	Version Version
	Time    time.Time // of its delta or changelog, else of its snapshot
	// Delta and Snapshot are the names of its files, "" where there is none.
	Delta, Snapshot           string
	DeltaBytes, SnapshotBytes int64
	// Content is what was seen in the delta or changelog.
	Content FileContent
	// Keys is the number of entries of the version, -1 if it cannot be loaded here.
	Keys int64
	// Change and Value are those of the key that was asked for; Value is nil if it has none.
	Change Change
	Value  []byte
	// Err is why the version could not be loaded.
	Err error
}

// History replays the versions of a store in ascending order; of those with several ids the one that the commit log names. If
// key is not nil the events say what became of it. Versions that cannot be loaded here are events with an error. each is
// called for every event and ends the history by returning false.
func (s *Store) History(ctx context.Context, key []byte, each func(Event) bool) error {
	h := historian{Store: s, key: key, rows: map[string][]byte{}, valid: true}
	for _, number := range s.Versions() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		v, err := s.Resolve(ctx, Version{Number: number})
		event := Event{Version: v, Keys: -1, Err: err}
		if err == nil {
			h.files(&event)
			event.Err = h.step(ctx, &event)
		}
		if event.Err != nil {
			h.valid = false
		}
		h.judge(&event)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !each(event) {
			return nil
		}
	}
	return nil
}

// historian is what is known of the version before.
type historian struct {
	*Store
	key      []byte
	rows     map[string][]byte
	valid    bool // rows are those of version previous
	previous Version
	// value and present are those of the key in the last version that could be loaded, if known.
	value          []byte
	present, known bool
}

// files fills in the names, sizes and time of the version's files.
func (h *historian) files(e *Event) {
	l := link{e.Version.Number, e.Version.ID}
	delta, snapshot := statestore.FileName(l.version, codec.Delta), statestore.FileName(l.version, codec.Snapshot)
	if h.Provider == RocksDB {
		delta, snapshot = path.Base(l.changelog("/")), path.Base(l.zip("/"))
	}
	for _, info := range h.Entries {
		switch info.Name {
		case delta:
			e.Delta, e.DeltaBytes, e.Time = delta, info.Size, info.ModTime
		case snapshot:
			e.Snapshot, e.SnapshotBytes = snapshot, info.Size
			if e.Delta == "" {
				e.Time = info.ModTime
			}
		}
	}
}

// step brings rows to the version of the event: from the one before if it follows that, else from its files.
func (h *historian) step(ctx context.Context, e *Event) error {
	follows, err := h.follows(ctx, e.Version)
	if err != nil {
		return err
	}
	if e.Delta == "" || !h.valid || !follows {
		view, err := h.Load(ctx, e.Version)
		if err != nil {
			return h.countOnly(ctx, e, err)
		}
		h.rows = make(map[string][]byte, view.Len())
		for entry := range view.All() {
			h.rows[string(entry.Key)] = entry.Value
		}
		h.valid, h.previous = true, e.Version
		return h.countOnly(ctx, e, nil)
	}
	f := h.file(*e)
	on, err := h.checksummed(ctx, append([]file{f}, h.changeFiles()...))
	if err != nil {
		return err
	}
	if e.Content, err = h.apply(ctx, f, on, h.rows); err != nil {
		h.valid = false
		return h.recover(ctx, e, err)
	}
	h.previous = e.Version
	return nil
}

// recover loads a version whose delta is damaged from its snapshot.
func (h *historian) recover(ctx context.Context, e *Event, err error) error {
	if e.Snapshot == "" || !errors.Is(err, core.ErrCorrupt) {
		return err
	}
	view, loadErr := h.Load(ctx, e.Version)
	if loadErr != nil {
		return err
	}
	h.rows = make(map[string][]byte, view.Len())
	for entry := range view.All() {
		h.rows[string(entry.Key)] = entry.Value
	}
	h.valid, h.previous = true, e.Version
	return nil
}

func (h *historian) file(e Event) file {
	kind := codec.Delta
	if h.Provider == RocksDB {
		kind = codec.Changelog
	}
	return file{path.Join(h.Dir, e.Delta), kind}
}

// countOnly counts the records of a delta whose version was loaded otherwise, or could not be; err is kept.
func (h *historian) countOnly(ctx context.Context, e *Event, err error) error {
	if e.Delta == "" {
		return err
	}
	on, sumErr := h.checksummed(ctx, h.changeFiles())
	if sumErr == nil {
		e.Content, sumErr = h.apply(ctx, h.file(*e), on, nil)
	}
	if err == nil && sumErr != nil && !errors.Is(sumErr, core.ErrCorrupt) {
		return sumErr
	}
	return err
}

// follows reports whether a version's changes are on top of the version before.
func (h *historian) follows(ctx context.Context, v Version) (bool, error) {
	if v.Number != h.previous.Number+1 {
		return false, nil
	}
	if v.ID == "" || v.Number == 1 {
		return true, nil
	}
	lineage, err := h.lineage(ctx, link{v.Number, v.ID})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || len(lineage) == 0 {
		return false, err
	}
	return lineage[len(lineage)-1].CheckpointUniqueID == h.previous.ID, nil
}

// judge says how many keys there are, and what became of the key.
func (h *historian) judge(e *Event) {
	if !h.valid || h.previous != e.Version {
		e.Change = UnknownState
		h.known = false
		return
	}
	e.Keys = int64(len(h.rows))
	if h.key == nil {
		return
	}
	value, present := h.rows[string(h.key)]
	wasKnown, was, before := h.known || e.Version.Number == 1, h.present, h.value
	e.Change = changeOf(wasKnown, was, present, present && was && bytes.Equal(before, value))
	if present {
		e.Value = value
	}
	h.known, h.present, h.value = true, present, value
}

func changeOf(known, was, is, equal bool) Change {
	switch {
	case !is && !(known && was):
		return StillAbsent
	case !is:
		return Removed
	case !known:
		return FirstKnown
	case !was:
		return Added
	case equal:
		return Unchanged
	}
	return Changed
}
