package coordinator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func sums(values ...uint32) *core.Checksums {
	return &core.Checksums{ChunkSize: core.ChecksumChunk, Sums: values}
}

func TestARegisteredStateIsReferredToByItsFirstHandle(t *testing.T) {
	file := &core.FileHandle{Path: "mem://fs/shared/a", Size: 3, Checksums: sums(1)}
	segment := &core.SegmentHandle{Path: "mem://fs/shared/p", Offset: 10, Size: 5, Scope: core.Shared, LogicalID: "l", Checksums: sums(2)}
	r := newRegistry()
	r.hold(4, []core.Object{{Path: "mem://fs/shared/old"}}, []core.StreamHandle{&core.FileHandle{Path: "mem://fs/shared/old", Size: 1}})
	r.hold(5, []core.Object{{Path: file.Path}, {Path: segment.Path}}, []core.StreamHandle{file, segment})
	exclusive := &core.SegmentHandle{Path: segment.Path, Offset: 10, Size: -1}
	inline := &core.BytesHandle{Name: "x"}
	fresh := &core.FileHandle{Path: "mem://fs/shared/new", Size: 9}
	for name, c := range map[string]struct {
		given, want core.StreamHandle
		problem     string
	}{
		"placeholder":                        {given: core.PlaceholderOf(file), want: file},
		"placeholder of a segment":           {given: core.PlaceholderOf(segment), want: segment},
		"path in another form":               {given: &core.FileHandle{Path: "mem://fs//shared/a", Size: -1}, want: file},
		"the handle itself":                  {given: file, want: file},
		"equal":                              {given: &core.FileHandle{Path: file.Path, Size: 3, Checksums: sums(1)}, want: file},
		"without checksums":                  {given: &core.FileHandle{Path: file.Path, Size: 3}, want: file},
		"new":                                {given: fresh, want: fresh},
		"inline":                             {given: inline, want: inline},
		"none":                               {},
		"exclusive":                          {given: exclusive, want: exclusive},
		"placeholder of an unknown state":    {given: core.PlaceholderOf(fresh), problem: "is not a part of the base"},
		"placeholder of an unknown segment":  {given: &core.SegmentHandle{Path: segment.Path, Offset: 11, Size: -1, Scope: core.Shared}, problem: "at 11 is not a part of the base"},
		"placeholder of an older checkpoint": {given: &core.FileHandle{Path: "mem://fs/shared/old", Size: -1}, problem: "is not a part of the base"},
		"other size":                         {given: &core.FileHandle{Path: file.Path, Size: 4}, problem: "has 4 bytes, and was known with 3"},
		"other checksums":                    {given: &core.FileHandle{Path: file.Path, Size: 3, Checksums: sums(7)}, problem: "other checksums"},
	} {
		got, err := r.admit(6, 5, c.given)
		if c.problem != "" {
			require.ErrorContains(t, err, c.problem, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
		if want, ok := c.want.(*core.FileHandle); ok && want == file {
			require.Same(t, file, got, name)
		}
	}
	// Another subtask of the same checkpoint may refer to what is in it already.
	r.hold(6, nil, []core.StreamHandle{fresh})
	got, err := r.admit(6, 5, core.PlaceholderOf(fresh))
	require.NoError(t, err)
	require.Same(t, fresh, got)
	r.release(5)
	_, err = r.admit(6, 5, core.PlaceholderOf(file))
	require.ErrorContains(t, err, "is not a part of the base")
}

// A registry lives through random histories beside a model that keeps, for each checkpoint, the plain list of what it needs.
func TestNothingThatACheckpointHoldsIsEverUnneeded(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		r, model := newRegistry(), map[int64]map[string]bool{}
		next := int64(1)
		var all []core.Object
		for i := range 20 {
			all = append(all, core.Object{Path: fmt.Sprintf("mem://fs/shared/%d", i)})
		}
		for range 200 {
			switch id := 1 + random.Int64N(next); {
			case random.IntN(3) == 0 && model[id] != nil:
				r.release(id)
				delete(model, id)
			case random.IntN(2) == 0 && model[id] != nil:
				enter(r, model, id, all[random.IntN(len(all))])
			default:
				model[next] = map[string]bool{}
				enter(r, model, next, all[random.IntN(len(all))])
				next++
			}
			needed := map[string]bool{}
			for _, paths := range model {
				for path := range paths {
					needed[path] = true
				}
			}
			var unneeded []string
			for _, o := range all {
				if !needed[o.Path] {
					unneeded = append(unneeded, o.Path)
				}
			}
			require.Equal(t, unneeded, r.unneeded(all, nil))
			require.Len(t, r.protected("mem://fs", nil), len(needed))
			require.Len(t, r.states, len(needed))
		}
		for id := range model {
			r.release(id)
		}
		require.Empty(t, r.refs)
		require.Empty(t, r.states)
		require.Empty(t, r.holdings)
	}
}

func enter(r *registry, model map[int64]map[string]bool, id int64, o core.Object) {
	model[id][o.Path] = true
	r.hold(id, []core.Object{o}, []core.StreamHandle{&core.FileHandle{Path: o.Path, Size: 1}})
}

func TestEveryKindOfSharedStateIsResolved(t *testing.T) {
	file := func(path string) core.StreamHandle { return &core.FileHandle{Path: path, Size: -1} }
	state := &metadata.SubtaskState{
		ManagedKeyed: &metadata.ChangelogHandle{
			Materialized: []metadata.KeyedHandle{
				&metadata.IncrementalHandle{
					Meta: file("meta"), Shared: []metadata.NamedFile{{Handle: file("shared")}}, Private: []metadata.NamedFile{{Handle: file("private")}},
				},
				&metadata.KeyGroupsHandle{Delegate: file("full")},
			},
			Changes: []metadata.KeyedHandle{
				&metadata.ChangelogFileHandle{Parts: []metadata.ChangelogPart{{Offset: 3, Handle: file("changes")}}},
				&metadata.ChangelogBytesHandle{},
			},
		},
		RawKeyed: &metadata.KeyGroupsHandle{Delegate: file("raw")},
	}
	before, err := metadata.MarshalKeyed(state.ManagedKeyed)
	require.NoError(t, err)
	mapped, err := mapState(state, func(h core.StreamHandle) (core.StreamHandle, error) {
		return &core.FileHandle{Path: "new " + h.(*core.FileHandle).Path, Size: 1}, nil //nolint:forcetypeassert // the state has no other
	})
	require.NoError(t, err)
	var paths []string
	for _, h := range statesOf(mapped) {
		paths = append(paths, h.(*core.FileHandle).Path) //nolint:forcetypeassert // the state has no other
	}
	require.Equal(t, []string{"new meta", "new shared", "new private", "new full", "new changes", "new raw"}, paths)
	after, err := metadata.MarshalKeyed(state.ManagedKeyed)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "the given state is not changed")
}

// A file that a task only refers to is not one that it has written: it may be that of another task, which is about to
// acknowledge it.
func TestAPlaceholderIsNoReasonToDeleteAFile(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.checkpoint()
	other := jobDir + "/shared/0b7c1e52-0000-4000-8000-000000000000"
	writeFile(t, fsys, other, "of another task")
	task := Task{counter.ID, 0}
	w.setSend(func(ctx context.Context, tr Trigger) error {
		keyed, err := incremental(tr, task, &core.BytesHandle{Name: "x"}, Placeholders([]metadata.NamedFile{
			{LocalPath: "1-1", Handle: &core.FileHandle{Path: "mem:" + other, Size: 15}},
			{LocalPath: "1-2", Handle: &core.SegmentHandle{Path: "mem:" + other + "1", Size: 15, Scope: core.Shared}},
		}))
		require.NoError(t, err)
		return w.c.Acknowledge(ctx, tr.Ack(task, &metadata.SubtaskState{ManagedKeyed: keyed}))
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrDeclined)
	require.ErrorContains(t, err, "is not a part of the base")
	require.Contains(t, tree(t, fsys, jobDir), other)

	require.True(t, isReference(core.Object{Size: -1}))
	require.True(t, isReference(core.Object{Size: -1, Segments: []core.Segment{{Size: -1}}}))
	require.False(t, isReference(core.Object{Size: -1, Segments: []core.Segment{{Size: -1}, {Size: 0}}}))
	require.False(t, isReference(core.Object{Size: 0}))
}
