package coordinator

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// underWay starts a checkpoint that nobody has answered, inside a bubble. The function returned waits for its outcome.
func (w *world) underWay(take func(ctx context.Context) (*Committed, error)) (Trigger, func() (*Committed, error)) {
	w.tb.Helper()
	w.setSend(func(context.Context, Trigger) error { return nil })
	type result struct {
		committed *Committed
		err       error
	}
	done := make(chan result, 1)
	go func() {
		committed, err := take(w.tb.Context())
		done <- result{committed, err}
	}()
	synctest.Wait()
	return w.lastTrigger(), func() (*Committed, error) {
		r := <-done
		return r.committed, r.err
	}
}

func TestAnAcknowledgementMayBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, nil)
		trigger, outcome := w.underWay(w.c.TriggerCheckpoint)
		var acks []Ack
		for _, task := range allTasks() {
			state, err := w.tasks.snapshot(t.Context(), trigger, task)
			require.NoError(t, err)
			acks = append(acks, trigger.Ack(task, state))
		}
		// As if it came from another process: equal, but not the same value.
		data, err := acks[1].MarshalBinary()
		require.NoError(t, err)
		var copied Ack
		require.NoError(t, copied.UnmarshalBinary(data))

		require.NoError(t, w.c.Acknowledge(t.Context(), acks[1]))
		require.NoError(t, w.c.Acknowledge(t.Context(), acks[1]))
		require.NoError(t, w.c.Acknowledge(t.Context(), copied))
		require.NoError(t, w.c.Acknowledge(t.Context(), acks[0]))
		require.NoError(t, w.c.Acknowledge(t.Context(), acks[2]))
		_, err = outcome()
		require.NoError(t, err)
		for _, ack := range acks {
			require.NoError(t, w.c.Acknowledge(t.Context(), ack), "also after the commit")
		}
		requireTidy(t, fsys, []int64{1})
		require.Equal(t, int64(3), w.counts.Count(EventLate))
	})
}

func TestAnAcknowledgementOfASavepointMayBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, nil)
		trigger, outcome := w.underWay(func(ctx context.Context) (*Committed, error) { return w.c.TriggerSavepoint(ctx, "") })
		state, err := w.tasks.snapshot(t.Context(), trigger, Task{counter.ID, 1})
		require.NoError(t, err)
		for _, task := range allTasks() {
			if task == (Task{counter.ID, 1}) {
				require.NoError(t, w.c.Acknowledge(t.Context(), trigger.Ack(task, state)))
			} else {
				require.NoError(t, w.ack(t.Context(), trigger, task))
			}
		}
		committed, err := outcome()
		require.NoError(t, err)
		require.NoError(t, w.c.Acknowledge(t.Context(), trigger.Ack(Task{counter.ID, 1}, state)))
		_, name, err := core.SplitQualified(committed.Pointer)
		require.NoError(t, err)
		requireRestorable(t, fsys, name)
	})
}

func TestATaskCannotAcknowledgeTwiceWithDifferentState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, nil)
		trigger, outcome := w.underWay(w.c.TriggerCheckpoint)
		task := Task{counter.ID, 0}
		first, err := w.tasks.snapshot(t.Context(), trigger, task)
		require.NoError(t, err)
		second, err := w.tasks.snapshot(t.Context(), trigger, task)
		require.NoError(t, err)
		require.NoError(t, w.c.Acknowledge(t.Context(), trigger.Ack(task, first)))
		require.ErrorIs(t, w.c.Acknowledge(t.Context(), trigger.Ack(task, second)), fs.ErrExist)
		require.ErrorIs(t, w.c.Acknowledge(t.Context(), trigger.AckFinished(task)), fs.ErrExist)
		require.ErrorIs(t, w.c.Decline(t.Context(), trigger.Decline(task, "")), fs.ErrExist)
		for _, other := range allTasks() {
			if other != task {
				require.NoError(t, w.ack(t.Context(), trigger, other))
			}
		}
		_, err = outcome()
		require.NoError(t, err)
		requireTidy(t, fsys, []int64{1}) // the files of the second one are gone
	})
}

func TestTheStateOfALateAcknowledgementIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, func(o *Options) { o.Retain = 2 })
		w.checkpoint()
		trigger, outcome := w.underWay(w.c.TriggerCheckpoint)
		task := Task{counter.ID, 0}
		late, err := w.tasks.snapshot(t.Context(), trigger, task)
		require.NoError(t, err)
		require.NoError(t, w.c.Decline(t.Context(), trigger.Decline(Task{feed.ID, 0}, "no")))
		_, err = outcome()
		require.ErrorIs(t, err, ErrDeclined)

		// It refers to the shared file of checkpoint 1, which stays, and to a new one, which goes.
		require.ErrorIs(t, w.c.Acknowledge(t.Context(), trigger.Ack(task, late)), ErrNotPending)
		require.ErrorIs(t, w.c.Decline(t.Context(), trigger.Decline(task, "")), ErrNotPending)
		requireTidy(t, fsys, []int64{1})
		require.Equal(t, int64(2), w.counts.Count(EventLate))
	})
}

func TestALateAcknowledgementDeletesOnlyWhatWasWrittenForIt(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, func(o *Options) { o.Retain = 2 })
	w.checkpoint()
	w.setSend(func(ctx context.Context, tr Trigger) error {
		return w.c.Decline(ctx, tr.Decline(Task{feed.ID, 0}, "no"))
	})
	_, err := w.c.TriggerCheckpoint(t.Context())
	require.ErrorIs(t, err, ErrDeclined)
	w.setSend(nil)
	inherited := w.tasks.known(Task{counter.ID, 0}, 1)
	for range 6 {
		w.checkpoint()
	}
	savepoint, err := w.c.TriggerSavepoint(t.Context(), "")
	require.NoError(t, err)

	// The first checkpoint is gone; a file of it was kept, because somebody else needs it.
	kept := []string{jobDir + "/taskowned/t", base + "/" + core.JobIDOf("other").String() + "/shared/s", jobDir + "/chk-8/sub/s"}
	kept = append(kept, nameOf(t, inherited[0].Handle.(*core.FileHandle).Path)) //nolint:forcetypeassert // shared state has no other
	require.NotContains(t, tree(t, fsys, jobDir), kept[3])
	gone := []string{jobDir + "/chk-2/f", jobDir + "/shared/f"}
	for _, name := range slices.Concat(kept, gone) {
		writeFile(t, fsys, name, "x")
	}
	state := &metadata.SubtaskState{}
	for _, name := range slices.Concat(kept, gone, requireRestorable(t, fsys, nameOf(t, savepoint.Pointer)),
		requireRestorable(t, fsys, jobDir+"/chk-8"), requireRestorable(t, fsys, jobDir+"/chk-7")) {
		state.InputChannels = append(state.InputChannels, metadata.NewChannelHandle(0, metadata.Channel{}, &core.FileHandle{Path: "mem:" + name, Size: 1}))
	}
	before := tree(t, fsys, "/")

	// A repeated acknowledgement of a checkpoint that was committed and deleted must not delete anything at all.
	committed := w.triggers()[0]
	require.ErrorIs(t, w.c.Acknowledge(t.Context(), committed.Ack(Task{counter.ID, 0}, state)), ErrNotPending)
	require.Equal(t, before, tree(t, fsys, "/"))

	late := w.triggers()[1]
	require.ErrorIs(t, w.c.Acknowledge(t.Context(), late.Ack(Task{counter.ID, 0}, state)), ErrNotPending)
	require.Equal(t, slices.DeleteFunc(before, func(name string) bool { return slices.Contains(gone, name) }), tree(t, fsys, "/"))
}

func TestOnlyTheLatestAbortedCheckpointsAreRemembered(t *testing.T) {
	fsys := newFS(t)
	w := startWorld(t, fsys, nil)
	w.setSend(func(ctx context.Context, tr Trigger) error {
		return w.c.Decline(ctx, tr.Decline(Task{feed.ID, 0}, "no"))
	})
	for range maxFailed + 1 {
		_, err := w.c.TriggerCheckpoint(t.Context())
		require.ErrorIs(t, err, ErrDeclined)
	}
	for i, stays := range []bool{true, false} {
		name := jobDir + "/shared/late"
		writeFile(t, fsys, name, "x")
		state := &metadata.SubtaskState{InputChannels: []metadata.ChannelHandle{
			metadata.NewChannelHandle(0, metadata.Channel{}, &core.FileHandle{Path: "mem:" + name, Size: 1}),
		}}
		require.ErrorIs(t, w.c.Acknowledge(t.Context(), w.triggers()[i].Ack(Task{counter.ID, 0}, state)), ErrNotPending)
		if stays {
			require.NoError(t, fsys.Remove(t.Context(), name))
		}
		require.NotContains(t, tree(t, fsys, jobDir), name)
	}
}

func TestAnAnswerThatIsForSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, nil)
		w.checkpoint()
		trigger, outcome := w.underWay(w.c.TriggerCheckpoint)
		task := Task{counter.ID, 0}
		state, err := w.tasks.snapshot(t.Context(), trigger, task)
		require.NoError(t, err)
		before := tree(t, fsys, jobDir)

		other := trigger
		other.Epoch++
		require.ErrorIs(t, w.c.Acknowledge(t.Context(), other.Ack(task, state)), core.ErrFenced)
		require.ErrorIs(t, w.c.Decline(t.Context(), other.Decline(task, "")), core.ErrFenced)
		for _, unknown := range []Task{{OperatorIDOf("nobody"), 0}, {counter.ID, 2}, {counter.ID, -1}} {
			require.ErrorIs(t, w.c.Acknowledge(t.Context(), trigger.Ack(unknown, state)), fs.ErrInvalid)
			require.ErrorIs(t, w.c.Decline(t.Context(), trigger.Decline(unknown, "")), fs.ErrInvalid)
		}
		for _, id := range []int64{-1, 99} {
			strange := trigger
			strange.CheckpointID = id
			require.ErrorIs(t, w.c.Acknowledge(t.Context(), strange.Ack(task, &metadata.SubtaskState{ManagedOperator: state.ManagedOperator})), ErrNotPending)
		}
		require.Equal(t, before, tree(t, fsys, jobDir), "nothing is deleted")
		require.NoError(t, w.ackAll(t.Context(), trigger))
		_, err = outcome()
		require.NoError(t, err)
	})
}

func TestStateThatCannotBePartOfACheckpoint(t *testing.T) {
	file := func(p string) core.StreamHandle { return &core.FileHandle{Path: "mem:" + p, Size: 1} }
	operator := func(h core.StreamHandle) *metadata.SubtaskState {
		return &metadata.SubtaskState{ManagedOperator: metadata.NewOperatorHandle([]metadata.NamedState{{Name: "a", Offsets: []int64{0}}}, h)}
	}
	keyed := func(start, count int32) *metadata.SubtaskState {
		return &metadata.SubtaskState{ManagedKeyed: fullState(metadata.KeyGroupRange{Start: start, Count: count})}
	}
	for _, c := range []struct {
		name  string
		state *metadata.SubtaskState
		want  string // "" for state that is taken
	}{
		{"nothing", nil, ""},
		{"a file of its own", operator(file(jobDir + "/chk-2/f")), ""},
		{"a relative file of its own", operator(&core.RelativeFileHandle{Dir: "mem:" + jobDir + "/chk-2", Name: "f", Size: 1}), ""},
		{"a shared file", operator(file(jobDir + "/shared/f")), ""},
		{"a task-owned file", operator(file(jobDir + "/taskowned/f")), ""},
		{"a file of another checkpoint", operator(file(jobDir + "/chk-1/f")), "is neither in"},
		{"a file of a checkpoint whose name begins alike", operator(file(jobDir + "/chk-22/f")), "is neither in"},
		{"a file in a directory of its own", operator(file(jobDir + "/chk-2/sub/f")), "is neither in"},
		{"a relative file of another checkpoint", operator(&core.RelativeFileHandle{Dir: "mem:" + jobDir + "/chk-1", Name: "f", Size: 1}), "relative handle"},
		{"a relative file in shared", operator(&core.RelativeFileHandle{Dir: "mem:" + jobDir + "/shared", Name: "f", Size: 1}), "relative handle"},
		{"a relative file that leads out", operator(&core.RelativeFileHandle{Dir: "mem:" + jobDir + "/chk-2", Name: "../shared/f", Size: 1}), `".."`},
		{"a file elsewhere", operator(file("/tmp/f")), "is neither in"},
		{"a file of another job", operator(file(base + "/" + core.JobIDOf("other").String() + "/shared/f")), "is neither in"},
		{"a file on another file system", operator(&core.FileHandle{Path: "hdfs://ns1" + jobDir + "/shared/f", Size: 1}), "is neither in"},
		{"its key groups", keyed(0, 4), ""},
		{"some of its key groups", keyed(1, 2), ""},
		{"key groups of another subtask", keyed(3, 2), "does not belong to the subtask"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fsys := newFS(t)
				w := startWorld(t, fsys, nil)
				w.checkpoint()
				trigger, outcome := w.underWay(w.c.TriggerCheckpoint)
				err := w.c.Acknowledge(t.Context(), trigger.Ack(Task{counter.ID, 0}, c.state))
				if c.want == "" {
					require.NoError(t, err)
					require.NoError(t, w.c.Close(t.Context()))
					_, err = outcome()
					require.ErrorIs(t, err, fs.ErrClosed)
					return
				}
				require.ErrorIs(t, err, ErrDeclined)
				require.ErrorContains(t, err, c.want)
				_, err = outcome()
				require.ErrorIs(t, err, ErrDeclined)
				require.ErrorContains(t, err, c.want)
				requireTidy(t, fsys, []int64{1})
			})
		})
	}
}

func TestAFinishedTaskHasNoState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := newFS(t)
		w := startWorld(t, fsys, nil)
		trigger, outcome := w.underWay(w.c.TriggerCheckpoint)
		state, err := w.tasks.snapshot(t.Context(), trigger, Task{counter.ID, 0})
		require.NoError(t, err)
		ack := trigger.Ack(Task{counter.ID, 0}, state)
		ack.Finished = true
		require.ErrorIs(t, w.c.Acknowledge(t.Context(), ack), ErrDeclined)
		_, err = outcome()
		require.ErrorContains(t, err, "a finished task has no state")
		requireTidy(t, fsys, nil) // the files of the refused acknowledgement are gone
	})
}

func TestTooMuchInlineStateAbortsTheCheckpoint(t *testing.T) {
	for _, c := range []struct {
		limit int64
		fails bool
	}{{3 * testInline / 2, false}, {3*testInline/2 - 1, true}} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			fsys := newFS(t)
			w := startWorld(t, fsys, func(o *Options) { o.MaxInlineBytes = c.limit })
			_, err := w.c.TriggerCheckpoint(t.Context())
			if !c.fails {
				require.NoError(t, err)
				requireTidy(t, fsys, []int64{1})
				return
			}
			require.ErrorIs(t, err, ErrDeclined)
			require.ErrorContains(t, err, "MaxInlineBytes")
			requireTidy(t, fsys, nil)
		})
	}
}

func TestInlineStateIsFoundInAllKindsOfHandles(t *testing.T) {
	inline := func(n int) *core.BytesHandle { return &core.BytesHandle{Data: make([]byte, n)} }
	file := &core.FileHandle{Size: 1 << 40}
	state := &metadata.SubtaskState{
		ManagedOperator: &metadata.OperatorHandle{Delegate: inline(1)},
		RawOperator:     &metadata.OperatorHandle{Delegate: file},
		ManagedKeyed: &metadata.ChangelogHandle{
			Materialized: []metadata.KeyedHandle{
				&metadata.KeyGroupsHandle{Delegate: &metadata.KeyGroupsHandle{Delegate: inline(2)}},
				&metadata.IncrementalHandle{
					Meta: inline(4), Shared: []metadata.NamedFile{{Handle: inline(8)}, {Handle: file}}, Private: []metadata.NamedFile{{Handle: inline(16)}},
				},
			},
			Changes: []metadata.KeyedHandle{
				&metadata.ChangelogBytesHandle{Changes: []metadata.StateChange{{Data: make([]byte, 32)}}},
				&metadata.ChangelogFileHandle{Parts: []metadata.ChangelogPart{{Handle: inline(64)}}},
			},
		},
		InputChannels:       []metadata.ChannelHandle{{Delegate: inline(128)}},
		ResultSubpartitions: []metadata.ChannelHandle{{Delegate: inline(256)}},
	}
	require.Equal(t, int64(511), inlineSize(state))
	require.Zero(t, inlineSize(&metadata.SubtaskState{}))
}
