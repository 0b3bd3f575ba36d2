package statestore

import (
	"slices"

	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// version is a version of a store in memory. users, cached and idle are guarded by the budget's mutex.
type version struct {
	store  *Store
	number int64
	origin origin
	tree   *ordered.Map

	users  int
	cached bool
	idle   bool // in Budget.idle: cached, and without users
}

// adopt takes a version into account, in use by the caller. reserved bytes, which the caller took before, are given back.
// If keep is set it also goes into its store's cache, in the place of one with the same number.
func (b *Budget) adopt(v *version, reserved int64, keep bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v.users = 1
	held := &v.store.held
	before := held.MemoryBytes()
	held.Add(v.tree)
	b.used += held.MemoryBytes() - before - reserved
	if keep && v.store.opts.CachedVersions > 0 {
		b.cache(v)
	}
	b.makeRoom(0)
	b.serve()
}

// cache puts a version into its store's cache and takes out what is too much: the least recently used.
func (b *Budget) cache(v *version) {
	s := v.store
	if old := s.cached[v.number]; old != nil {
		b.uncache(old)
	}
	if s.cached == nil {
		s.cached = map[int64]*version{}
	}
	s.cached[v.number] = v
	s.recent = append(s.recent, v)
	v.cached = true
	for len(s.recent) > s.opts.CachedVersions {
		b.uncache(s.recent[0])
	}
}

// uncache takes a version out of its store's cache.
func (b *Budget) uncache(v *version) {
	s := v.store
	delete(s.cached, v.number)
	s.recent = without(s.recent, v)
	v.cached = false
	if v.users == 0 {
		b.free(v)
	}
}

// free ends a version that is neither cached nor in use.
func (b *Budget) free(v *version) {
	b.notIdle(v)
	b.used -= v.store.held.Remove(v.tree)
}

func (b *Budget) notIdle(v *version) {
	if v.idle {
		v.idle = false
		b.idle = without(b.idle, v)
	}
}

func without(versions []*version, v *version) []*version {
	return slices.DeleteFunc(versions, func(o *version) bool { return o == v })
}

// acquire returns the cached version with the given number, now in use by the caller, or nil.
func (b *Budget) acquire(s *Store, number int64) *version {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := s.cached[number]
	if v != nil {
		b.use(v)
		s.recent = append(without(s.recent, v), v)
	}
	return v
}

// acquireBelow returns the cached version with the highest number that is at least from and below to, or nil.
func (b *Budget) acquireBelow(s *Store, from, to int64) *version {
	b.mu.Lock()
	defer b.mu.Unlock()
	var best *version
	for number, v := range s.cached {
		if number >= from && number < to && (best == nil || number > best.number) {
			best = v
		}
	}
	if best != nil {
		b.use(best)
	}
	return best
}

func (b *Budget) use(v *version) {
	v.users++
	b.notIdle(v)
}

// release ends a use.
func (b *Budget) release(v *version) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v.users--
	switch {
	case v.users > 0:
		return
	case v.cached:
		v.idle = true
		b.idle = append(b.idle, v)
	default:
		b.free(v)
	}
	b.serve()
}

// forget takes versions of a store out of the cache: those for which gone is true.
func (b *Budget) forget(s *Store, gone func(*version) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range slices.Clone(s.recent) {
		if gone(v) {
			b.uncache(v)
		}
	}
	b.serve()
}
