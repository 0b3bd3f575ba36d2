package ops

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

// Newest stands for the version that the query would begin with.
const Newest = -1

// StateRead is a version that was read, with what the user should know of it.
type StateRead struct {
	View  *sparkckpt.View
	Names report.StateView
	Notes []string
}

// ReadState loads a version of a store; Newest is the one that the query would begin with.
func ReadState(ctx context.Context, open core.Opener, t StateTarget, v sparkckpt.Version) (*StateRead, error) {
	s, err := openStore(ctx, open, t)
	if err != nil {
		return nil, err
	}
	return readState(ctx, s, v)
}

func readState(ctx context.Context, s *sparkckpt.Store, v sparkckpt.Version) (*StateRead, error) {
	if v.Number == Newest {
		v.Number = begin(s)
	}
	v, err := s.Resolve(ctx, v)
	if err != nil {
		return nil, explainState(err)
	}
	view, err := s.Load(ctx, v)
	if err != nil {
		return nil, explainState(err)
	}
	r := &StateRead{View: view, Names: report.StateView{StateID: stateID(s.StoreID, ""), Version: v.Number, ID: v.ID}}
	for _, passed := range view.Passed {
		r.Notes = append(r.Notes, fmt.Sprintf("passed over a damaged snapshot, which deltas replace: %v", passed))
	}
	committed, known := s.Checkpoint().CommittedVersion()
	if known && v.Number > committed {
		r.Notes = append(r.Notes, fmt.Sprintf("version %d is above %d, the one that the newest batch committed: the query will write it again", v.Number, committed))
	}
	return r, nil
}

// Dump turns what was read into a report.
func (r *StateRead) Dump(checkpoint string) *report.StateDump {
	d := &report.StateDump{Checkpoint: checkpoint, StateView: r.Names, Entries: make([]report.StateEntry, 0, r.View.Len())}
	for e := range r.View.All() {
		d.Entries = append(d.Entries, report.StateEntry{Key: e.Key, Value: notNil(e.Value)})
	}
	return d
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// StateGet reads the value of one key.
func StateGet(ctx context.Context, open core.Opener, t StateTarget, v sparkckpt.Version, key []byte) (*report.StateDump, []string, error) {
	r, err := ReadState(ctx, open, t, v)
	if err != nil {
		return nil, nil, err
	}
	value, found := r.View.Get(key)
	if !found {
		return nil, r.Notes, &report.Problem{
			Kind: report.None, Operation: "get", Path: t.Checkpoint,
			Message: fmt.Sprintf("version %s of %s has no key %s", r.View.Version, r.Names.StateID, hex.EncodeToString(key)),
			Hint:    "state dump --raw shows all keys, state history --key in which versions one was there",
		}
	}
	d := &report.StateDump{Checkpoint: t.Checkpoint, StateView: r.Names}
	d.Entries = []report.StateEntry{{Key: key, Value: notNil(value)}}
	return d, r.Notes, nil
}

// StateDiff compares two versions of a store.
func StateDiff(ctx context.Context, open core.Opener, t StateTarget, from, to sparkckpt.Version) (*report.StateDiff, []string, error) {
	s, err := openStore(ctx, open, t)
	if err != nil {
		return nil, nil, err
	}
	a, err := readState(ctx, s, from)
	if err != nil {
		return nil, nil, err
	}
	b, err := readState(ctx, s, to)
	if err != nil {
		return nil, nil, err
	}
	d := &report.StateDiff{
		Checkpoint: t.Checkpoint, StateID: stateID(s.StoreID, ""), From: a.Names, To: b.Names, Entries: []report.StateDifference{},
	}
	compareViews(d, a.View, b.View)
	return d, append(a.Notes, b.Notes...), nil
}

// compareViews walks through both in the order of their keys.
func compareViews(d *report.StateDiff, a, b *sparkckpt.View) {
	var left, right []sparkckpt.Entry
	for e := range a.All() {
		left = append(left, e)
	}
	for e := range b.All() {
		right = append(right, e)
	}
	for len(left) > 0 || len(right) > 0 {
		order := 0
		switch {
		case len(left) == 0:
			order = 1
		case len(right) == 0:
			order = -1
		default:
			order = bytes.Compare(left[0].Key, right[0].Key)
		}
		switch {
		case order < 0:
			d.Removed++
			d.Entries = append(d.Entries, report.StateDifference{Key: left[0].Key, From: notNil(left[0].Value)})
			left = left[1:]
			continue
		case order > 0:
			d.Added++
			d.Entries = append(d.Entries, report.StateDifference{Key: right[0].Key, To: notNil(right[0].Value)})
			right = right[1:]
			continue
		case bytes.Equal(left[0].Value, right[0].Value):
			d.Equal++
		default:
			d.Changed++
			d.Entries = append(d.Entries, report.StateDifference{Key: left[0].Key, From: notNil(left[0].Value), To: notNil(right[0].Value)})
		}
		left, right = left[1:], right[1:]
	}
}

// StateHistory replays the versions of a store; key may be nil.
func StateHistory(ctx context.Context, open core.Opener, t StateTarget, key []byte) (*report.StateHistory, error) {
	s, err := openStore(ctx, open, t)
	if err != nil {
		return nil, err
	}
	h := &report.StateHistory{Checkpoint: t.Checkpoint, StateID: stateID(s.StoreID, ""), Key: key, Events: []report.StateEvent{}}
	err = s.History(ctx, key, func(e sparkckpt.Event) bool {
		h.Events = append(h.Events, stateEvent(ctx, e, key != nil))
		return true
	})
	return h, err
}

func stateEvent(ctx context.Context, e sparkckpt.Event, withKey bool) report.StateEvent {
	event := report.StateEvent{Version: e.Version.Number, ID: e.Version.ID, Time: e.Time.UTC()}
	if e.Delta != "" {
		event.Delta = &e.DeltaBytes
		event.Puts, event.Removals, event.Merges = &e.Content.Puts, &e.Content.Removals, &e.Content.Merges
	}
	if e.Snapshot != "" {
		event.Snapshot = &e.SnapshotBytes
	}
	if e.Keys >= 0 {
		event.Keys = &e.Keys
	}
	if withKey {
		event.Change = string(e.Change)
		if e.Value != nil {
			event.Value = e.Value
		}
	}
	if e.Err != nil {
		p := report.NewProblem(ctx, explainState(e.Err))
		event.Problem = &p
	}
	return event
}
