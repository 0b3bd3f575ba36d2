package storetest

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

func committedVersions(s *subject) {
	writer := s.open(s.FS)
	states := s.history(writer, 0, 5, contents{})
	reader := s.open(s.Second)
	for v, want := range states {
		s.holds(writer, int64(v), want)
		s.holds(reader, int64(v), want)
	}
	latest, err := reader.Latest(s.ctx)
	s.must(err)
	s.is(latest, int64(5), "the latest version")
}

func oneFileAVersion(s *subject) {
	store := s.open(s.FS)
	s.must(s.commit(store, 0, contents{"k": "12345678"}))
	s.must(s.commit(store, 1, contents{"k": "12345678"}))
	s.must(s.commit(store, 2, contents{}))
	s.is(fmt.Sprint(s.files()), "[1.delta 2.delta 3.delta]", "the files")
	s.holds(s.open(s.Second), 2, contents{"k": "12345678"})
	s.holds(s.open(s.Second), 3, contents{})
}

func recommits(s *subject) {
	states := s.history(s.open(s.FS), 0, 3, contents{})
	again := s.open(s.Second)
	s.must(s.commit(again, 2, states[3]))
	var conflict *statestore.ConflictError
	err := s.commit(again, 2, states[3].with("other", "12345678"))
	s.is(errors.As(err, &conflict), true, "a conflict: %v", err)
	var ahead *statestore.AheadError
	err = s.commit(again, 1, states[2])
	s.is(errors.As(err, &ahead), true, "versions above: %v", err)
	s.holds(s.open(s.FS), 3, states[3])
}

func raceOfOwners(s *subject) {
	s.must(s.commit(s.open(s.FS), 0, contents{}))
	v := int64(1)
	for range s.rounds {
		const n = 4
		outcomes := make(chan error, n)
		var all []*statestore.Tx
		for i := range n {
			fsys := s.FS
			if i%2 == 1 {
				fsys = s.Second
			}
			tx, err := s.open(fsys).Begin(s.ctx, v)
			s.must(err)
			s.must(tx.Put([]byte("who"), []byte(fmt.Sprint(i, "-------")[:8])))
			all = append(all, tx)
		}
		for _, tx := range all {
			go func() {
				_, err := tx.Commit(s.ctx)
				outcomes <- err
			}()
		}
		won := 0
		for range n {
			err := <-outcomes
			if err == nil {
				won++
			} else if !errors.Is(err, core.ErrFenced) {
				s.Fatalf("a loser gets %v", err)
			}
		}
		latest, err := s.open(s.Second).Latest(s.ctx)
		s.must(err)
		s.is(latest, v+int64(won), "the latest version, with %d winners", won)
		if won > 1 {
			s.Fatalf("%d winners", won)
		}
		v = latest
	}
}

func fencing(s *subject) {
	old := s.open(s.FS)
	states := s.history(old, 0, 3, contents{})
	zombie, err := old.Begin(s.ctx, 3)
	s.must(err)
	s.must(zombie.Put([]byte("zombie"), []byte("12345678")))
	successor := s.open(s.Second)
	s.must(successor.Claim(s.ctx))
	_, err = zombie.Commit(s.ctx)
	s.is(errors.Is(err, core.ErrFenced), true, "the commit: %v", err)
	err = old.Rollback(s.ctx, 1)
	s.is(errors.Is(err, core.ErrFenced), true, "the rollback: %v", err)
	err = old.Maintain(s.ctx)
	s.is(errors.Is(err, core.ErrFenced), true, "maintenance: %v", err)
	s.holds(old, 3, states[3])
	s.must(s.commit(successor, 3, states[3].with("successor", "12345678")))
}

func rollback(s *subject) {
	store := s.open(s.FS)
	states := s.history(store, 0, 6, contents{})
	s.must(store.Snapshot(s.ctx, 5))
	s.must(store.Rollback(s.ctx, 4))
	s.is(fmt.Sprint(s.files()), "[1.delta 2.delta 3.delta 4.delta]", "the files")
	other := states[4].with("another", "branch--")
	s.must(s.commit(store, 4, other))
	s.holds(s.open(s.Second), 5, other)
}

func maintenance(s *subject) {
	s.opts.Snapshots, s.opts.Cleanup = statestore.SnapshotPolicy{MinDeltas: 2}, statestore.CleanupPolicy{Retain: 3}
	store := s.open(s.FS)
	state := contents{}
	for v := range int64(12) {
		state = s.history(store, v, 1, state)[1]
		s.must(store.Maintain(s.ctx))
		reader := s.open(s.Second)
		s.holds(reader, v+1, state)
		for back := max(v-1, 1); back <= v; back++ {
			_, err := s.load(reader, back)
			s.must(err)
		}
	}
	s.is(fmt.Sprint(s.files()), "[10.delta 11.delta 12.delta 12.snapshot 9.delta 9.snapshot]", "the files")
}

func repair(s *subject) {
	store := s.open(s.FS)
	states := s.history(store, 0, 4, contents{})
	s.must(store.Snapshot(s.ctx, 3))
	s.damage("3.snapshot")
	reader := s.open(s.Second)
	s.holds(reader, 3, states[3])
	s.holds(reader, 4, states[4])
	repaired, err := s.open(s.FS).Repair(s.ctx)
	s.must(err)
	s.is(fmt.Sprint(repaired), "[3]", "what was repaired")
	problems, err := s.open(s.Second).Verify(s.ctx)
	s.must(err)
	s.is(len(problems), 0, "problems: %v", problems)
	s.is(slices.Contains(s.files(), "3.snapshot"), true, "the snapshot is back")
}

func damagedDelta(s *subject) {
	states := s.history(s.open(s.FS), 0, 4, contents{})
	s.damage("4.delta")
	reader := s.open(s.Second)
	_, err := s.load(reader, 4)
	s.is(errors.Is(err, core.ErrCorrupt), true, "the load: %v", err)
	s.holds(reader, 3, states[3])
}

func missing(s *subject) {
	states := s.history(s.open(s.FS), 0, 4, contents{})
	s.must(s.FS.Remove(s.ctx, s.dir()+"/3.delta"))
	reader := s.open(s.Second)
	s.holds(reader, 2, states[2])
	var gap *statestore.GapError
	_, err := s.load(reader, 4)
	s.is(errors.As(err, &gap), true, "the load of 4: %v", err)
	_, err = s.load(reader, 9)
	s.is(errors.Is(err, fs.ErrNotExist), true, "the load of 9: %v", err)
	_, err = s.load(reader, -1)
	s.is(errors.Is(err, fs.ErrInvalid), true, "the load of -1: %v", err)
}
