package report

import (
	"cmp"
	"context"
	"path"
	"slices"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// EntryKind says what a listed directory is for. The values are part of the JSON interface.
type EntryKind string

// The kinds of entries.
const (
	CheckpointEntry EntryKind = "checkpoint"
	SavepointEntry  EntryKind = "savepoint"
)

// State of a listed directory. The values are part of the JSON interface.
type State string

// The states.
const (
	Complete   State = "complete"
	InProgress State = "in_progress" // no metadata yet: it is being written, or was given up
	Broken     State = "broken"      // its metadata cannot be read, or is damaged
	Disposing  State = "disposing"   // its disposal has begun
	Emptied    State = "disposed"    // it was disposed of; foreign files keep its directory
)

// Listing is the result of ls.
type Listing struct {
	Root    string  `json:"root"`
	Entries []Entry `json:"entries"`
}

// Entry is a checkpoint or savepoint of a listing.
type Entry struct {
	Pointer string    `json:"pointer"`
	Job     string    `json:"job,omitempty"`        // of a checkpoint, where its directory tells
	Prefix  string    `json:"job_prefix,omitempty"` // the first digits of the job id, all that a savepoint's name tells
	Kind    EntryKind `json:"kind"`
	ID      *int64    `json:"id"` // null for a savepoint whose metadata was not read
	State   State     `json:"state"`
	// Time is that of the metadata file, without one that of the directory.
	Time       time.Time `json:"time"`
	AgeSeconds int64     `json:"age_seconds"`
	// MetadataBytes is null without metadata. The others are null if the metadata was not read.
	MetadataBytes *int64 `json:"metadata_bytes"`
	ObjectBytes   *int64 `json:"object_bytes"`
	Objects       *int   `json:"objects"`
	// UnknownSizes counts the objects that have no size in the metadata; ObjectBytes has for them only what is needed of them.
	UnknownSizes int      `json:"objects_of_unknown_size,omitempty"`
	Problem      *Problem `json:"problem,omitempty"`
}

// Name of the entry's directory.
func (e Entry) Name() string { return path.Base(e.Pointer) }

// Facts are what was seen of a checkpoint's or savepoint's directory.
type Facts struct {
	Pointer string // qualified directory
	Job     string // "" if unknown
	// Time and MetadataSize are those of the metadata file if HasMetadata, else Time is that of the directory.
	Time         time.Time
	HasMetadata  bool
	MetadataSize int64
	// Disposing: the directory holds the metadata of a disposal that has begun.
	Disposing bool
	// Disposed: it holds the mark of a disposal that has removed all that was the checkpoint's own.
	Disposed bool
	// Content is nil if the metadata was not read.
	Content *Content
	// Err is why the metadata, or the directory, could not be read.
	Err error
}

// Content is what the metadata of a checkpoint tells a listing.
type Content struct {
	ID int64
	Inventory
}

// NewListing makes the entries of what was seen: jobs in order, of each first its checkpoints by id, then its savepoints by
// age, so that what is newest comes last.
func NewListing(ctx context.Context, root string, facts []Facts, now time.Time) *Listing {
	l := &Listing{Root: root, Entries: make([]Entry, 0, len(facts))}
	for _, f := range facts {
		l.Entries = append(l.Entries, newEntry(ctx, f, now))
	}
	slices.SortFunc(l.Entries, func(a, b Entry) int {
		byID := 0
		if a.Kind == CheckpointEntry && a.ID != nil && b.ID != nil {
			byID = cmp.Compare(*a.ID, *b.ID)
		}
		return cmp.Or(
			cmp.Compare(a.Job, b.Job),
			cmp.Compare(a.Kind, b.Kind),
			byID,
			a.Time.Compare(b.Time),
			cmp.Compare(a.Pointer, b.Pointer),
		)
	})
	return l
}

func newEntry(ctx context.Context, f Facts, now time.Time) Entry {
	e := Entry{
		Pointer: f.Pointer, Job: f.Job, Kind: SavepointEntry, State: stateOf(f),
		Time: f.Time.UTC(), AgeSeconds: max(0, int64(now.Sub(f.Time)/time.Second)),
	}
	if f.Content != nil {
		e.ID = &f.Content.ID
		e.Objects, e.ObjectBytes, e.UnknownSizes = &f.Content.Objects, &f.Content.Bytes, f.Content.UnknownSizes
	}
	name := path.Base(f.Pointer)
	if id, ok := core.ParseCheckpointDirName(name); ok {
		e.Kind, e.ID = CheckpointEntry, &id
	} else if core.IsSavepointDirName(name) {
		e.Prefix = name[len("savepoint-"):][:6]
	}
	if f.HasMetadata {
		e.MetadataBytes = &f.MetadataSize
	}
	if f.Err != nil {
		p := NewProblem(ctx, f.Err)
		e.Problem = &p
	}
	return e
}

func stateOf(f Facts) State {
	switch {
	case f.Err != nil:
		return Broken
	case f.HasMetadata:
		return Complete
	case f.Disposing:
		return Disposing
	case f.Disposed:
		return Emptied
	}
	return InProgress
}

// Problems of the broken entries.
func (l *Listing) Problems() []Problem {
	var problems []Problem
	for _, e := range l.Entries {
		if e.Problem == nil {
			continue
		}
		p := *e.Problem
		if p.Path == "" {
			p.Path = e.Pointer
		}
		problems = append(problems, p)
	}
	return problems
}
