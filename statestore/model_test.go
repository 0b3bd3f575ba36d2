package statestore_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// model drives stores on one directory through a random history, beside a plain map for each version.
type model struct {
	t    *testing.T
	rand *rand.Rand
	fsys *memfs.FS
	opts statestore.Options

	budget   *statestore.Budget
	opened   []*statestore.Store
	owner    *statestore.Store // the newest; it commits
	zombie   *statestore.Store // an earlier one, or nil
	versions map[int64]state   // what was acknowledged
	latest   int64
	oldest   int64 // that must be loadable
	// pending is the commit, or the lowest version that a rollback keeps, that is under way: a crash may find it done or not.
	pending *pendingChange
	// damagedSnapshot says that a snapshot is damaged, which the deltas make too, and may be in quarantine.
	damagedSnapshot bool
	history         []string
}

type pendingChange struct {
	version int64
	made    state // nil for a rollback to the version
}

func newModel(t *testing.T, seed uint64) *model {
	r := rand.New(rand.NewPCG(seed, 7))
	opts := statestore.Options{
		Compression:    codec.Compression(r.IntN(5)),
		RowChecksum:    r.IntN(3) == 0,
		NoFooter:       r.IntN(3) == 0,
		CachedVersions: r.IntN(4) - 1,
		Snapshots:      statestore.SnapshotPolicy{MinDeltas: 1 + r.IntN(4)},
		Cleanup:        statestore.CleanupPolicy{Retain: 2 + r.IntN(5), MaxDeletes: r.IntN(3)},
	}
	m := &model{t: t, rand: r, fsys: newMem(), opts: opts, versions: map[int64]state{0: {}}}
	m.budget = statestore.NewBudget(statestore.BudgetOptions{Limit: []int64{0, 1 << 20, 64 << 10}[r.IntN(3)], Wait: -1})
	m.reopen()
	return m
}

func (m *model) log(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf(format, args...))
}

func (m *model) reopen() {
	opts := m.opts
	opts.Budget = m.budget
	m.owner = openStore(m.t, m.fsys, opts)
	m.opened = append(m.opened, m.owner)
}

// successor returns a state after a few random changes.
func (m *model) successor(of state) state {
	next := of.with()
	for range m.rand.IntN(6) {
		k := fmt.Sprintf("key-%d", m.rand.IntN(12))
		if m.rand.IntN(3) == 0 {
			delete(next, k)
		} else {
			next[k] = fmt.Sprintf("%08d", m.rand.IntN(1e8)) // a length that files without footers can hold too
		}
	}
	return next
}

func (m *model) step() {
	switch m.rand.IntN(13) {
	case 0, 1, 2, 3:
		m.commit()
	case 4:
		m.abortedTransaction()
	case 5:
		m.recommit()
	case 6:
		m.rollback()
	case 7, 8:
		m.maintain()
	case 9:
		m.takeOver()
	case 10:
		m.zombieActs()
	case 11:
		m.check(m.owner, m.loadable())
	case 12:
		m.fork()
	}
}

func (m *model) commit() {
	made := m.successor(m.versions[m.latest])
	m.log("commit %d", m.latest+1)
	m.pending = &pendingChange{m.latest + 1, made}
	commit(m.t, m.owner, m.latest, made)
	m.pending = nil
	m.latest++
	m.versions[m.latest] = made
}

func (m *model) abortedTransaction() {
	m.log("abort")
	tx := begin(m.t, m.owner, m.latest)
	change(m.t, tx, m.successor(m.versions[m.latest]))
	require.NoError(m.t, tx.Abort())
}

// recommit does the newest version once more: with equal content, then with other.
func (m *model) recommit() {
	if m.latest <= m.oldest || m.latest == 0 {
		return
	}
	m.log("recommit %d", m.latest)
	require.NoError(m.t, tryCommit(m.t, m.owner, m.latest-1, m.versions[m.latest]))
	var conflict *statestore.ConflictError
	require.ErrorAs(m.t, tryCommit(m.t, m.owner, m.latest-1, m.versions[m.latest].with("other", "12345678")), &conflict)
}

// fork changes one version in three transactions, of which none sees another. The first to commit makes the next version;
// the second wants the same, the third something else.
func (m *model) fork() {
	m.log("fork %d", m.latest)
	base := m.versions[m.latest]
	made := m.successor(base)
	wanted := []state{made, made, made.with("another branch", "12345678")}
	var branches []*statestore.Tx
	for _, want := range wanted {
		tx := begin(m.t, m.owner, m.latest)
		require.Equal(m.t, base, contents(m.t, tx.All()))
		change(m.t, tx, want)
		branches = append(branches, tx)
	}
	for i, tx := range branches {
		require.Equal(m.t, wanted[i], contents(m.t, tx.All()))
	}
	m.pending = &pendingChange{m.latest + 1, made}
	for _, tx := range branches[:2] {
		v, err := tx.Commit(m.t.Context())
		require.NoError(m.t, err)
		require.Equal(m.t, m.latest+1, v)
	}
	m.pending = nil
	_, err := branches[2].Commit(m.t.Context())
	var conflict *statestore.ConflictError
	require.ErrorAs(m.t, err, &conflict)
	m.latest++
	m.versions[m.latest] = made
	if m.latest-2 >= m.oldest {
		var ahead *statestore.AheadError
		require.ErrorAs(m.t, tryCommit(m.t, m.owner, m.latest-2, wanted[2]), &ahead)
	}
}

func (m *model) maintain() {
	m.log("maintain")
	m.oldest = max(m.oldest, m.latest-int64(m.opts.Cleanup.Retain)+1, 0)
	require.NoError(m.t, m.owner.Maintain(m.t.Context()))
}

func (m *model) rollback() { m.rollbackTo(m.oldest + m.rand.Int64N(m.latest-m.oldest+1)) }

func (m *model) rollbackTo(to int64) {
	m.log("rollback to %d", to)
	abandoned := begin(m.t, m.owner, m.latest)
	m.pending = &pendingChange{version: to}
	require.NoError(m.t, m.owner.Rollback(m.t.Context(), to))
	m.pending = nil
	for v := to + 1; v <= m.latest; v++ {
		delete(m.versions, v)
	}
	gone := to < m.latest
	m.latest = to
	change(m.t, abandoned, state{"abandoned": "12345678"})
	if gone {
		_, err := abandoned.Commit(m.t.Context())
		require.ErrorIs(m.t, err, fs.ErrExist, "the version it began from is gone")
	}
	require.NoError(m.t, abandoned.Abort())
}

// takeOver opens another owner; the old one becomes the zombie.
func (m *model) takeOver() {
	m.log("take over")
	m.zombie = m.owner
	m.reopen()
	require.NoError(m.t, m.owner.Claim(m.t.Context()))
}

// zombieActs: whatever a former owner tries, it is refused and changes nothing.
func (m *model) zombieActs() {
	if m.zombie == nil {
		return
	}
	m.log("zombie")
	err := tryCommit(m.t, m.zombie, m.latest, state{"zombie": "12345678"})
	require.ErrorIs(m.t, err, core.ErrFenced)
	require.ErrorIs(m.t, m.zombie.Rollback(m.t.Context(), m.oldest), core.ErrFenced)
	require.ErrorIs(m.t, m.zombie.Maintain(m.t.Context()), core.ErrFenced)
	m.check(m.zombie, m.loadable())
}

// loadable are the versions that must be loadable.
func (m *model) loadable() map[int64]state {
	versions := map[int64]state{}
	for v := m.oldest; v <= m.latest; v++ {
		versions[v] = m.versions[v]
	}
	return versions
}

func (m *model) check(s *statestore.Store, versions map[int64]state) {
	for v, want := range versions {
		require.Equal(m.t, want, load(m.t, s, v), "version %d", v)
	}
}

func (m *model) run(steps int) {
	defer func() {
		if m.t.Failed() {
			m.t.Logf("%+v\n%v", m.opts, m.history)
		}
	}()
	for range steps {
		m.step()
	}
	m.check(m.owner, m.loadable())
	m.check(openStore(m.t, m.fsys, m.opts), m.loadable())
	for _, s := range m.opened {
		require.NoError(m.t, s.Close())
	}
	require.Zero(m.t, m.budget.Stats().Used)
	require.Empty(m.t, m.fsys.OpenFiles())
}

func TestRandomHistoriesAgreeWithAMapPerVersion(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	t.Logf("first seed %d", first)
	for seed := first; seed < first+histories && !t.Failed(); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newModel(t, seed).run(60) })
	}
}

// After a crash at any mutation what was acknowledged is there, what was under way is there wholly or not at all, and a new
// owner goes on.
func TestACrashAtAnyMutationLosesNothing(t *testing.T) {
	first := uint64(time.Now().UnixNano())
	t.Logf("first seed %d", first)
	for seed := first; seed < first+crashHistories && !t.Failed(); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newModel(t, seed)
			lots := rand.New(rand.NewPCG(seed, 11))
			m.fsys.OnMutation(func(memfs.Mutation) {
				if lots.IntN(crashOneIn) > 0 {
					return
				}
				percent := []int{0, 50, 100}[lots.IntN(3)]
				m.afterCrash(m.fsys.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: lots}), lots)
			})
			m.run(25)
		})
	}
}

// afterCrash looks at what a crash has left.
func (m *model) afterCrash(fsys *memfs.FS, lots *rand.Rand) {
	t := m.t
	s := openStore(t, fsys, m.opts)
	latest, err := s.Latest(t.Context())
	require.NoError(t, err)
	want := m.loadable()
	top := m.latest
	switch p := m.pending; {
	case p == nil:
		require.Equal(t, m.latest, latest)
	case p.made != nil:
		require.Contains(t, []int64{m.latest, p.version}, latest)
		if latest == p.version {
			want[latest], top = p.made, latest
		}
	default:
		require.True(t, p.version <= latest && latest <= m.latest, "rolled back to %d of %d down to %d", latest, m.latest, p.version)
		top = latest
	}
	for v := range want {
		if v > top {
			delete(want, v)
		}
	}
	m.check(s, want)
	if m.damagedSnapshot {
		_, err := s.Repair(t.Context())
		require.NoError(t, err)
	}
	problems, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)

	// Life goes on, and the leftovers go.
	if lots.IntN(2) == 0 {
		require.NoError(t, s.Maintain(t.Context()))
	}
	made := want[top].with("after the crash", "12345678")
	commit(t, s, top, made)
	require.Equal(t, made, load(t, openStore(t, fsys, m.opts), top+1))
	m.onlyOwnFiles(fsys)
}

// onlyOwnFiles: beside versions there is one owner's directory, and nothing on its way in it.
func (m *model) onlyOwnFiles(fsys *memfs.FS) {
	epochs := 0
	for _, name := range names(m.t, fsys, home) {
		if _, ok := statestore.ParseEpochName(name); ok {
			epochs++
			for _, in := range names(m.t, fsys, home+"/"+name) {
				if in != "owner" {
					require.Empty(m.t, names(m.t, fsys, home+"/"+name+"/"+in))
				}
			}
			continue
		}
		_, _, ok := statestore.ParseFileName(name)
		require.True(m.t, ok || m.damagedSnapshot && name == "_quarantine", name)
	}
	require.Equal(m.t, 1, epochs)
}
