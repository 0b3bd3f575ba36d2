package ops

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

// vectors are checkpoints of Spark.
const vectors = "../../../../statestore/sparkckpt/testdata/spark.tar.gz"

const sweptStore = "right-keyToNumValues"

// sparkFiles are the files of a Spark checkpoint.
func sparkFiles(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open(vectors)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			require.NotEmpty(t, files)
			return files
		}
		require.NoError(t, err)
		rest, found := strings.CutPrefix(path.Clean(h.Name), "generated/query-join-inner-hdfs-lz4/checkpoint")
		if !found {
			continue
		}
		files["/ckpt"+rest], err = io.ReadAll(r)
		require.NoError(t, err)
	}
}

// inMemory is a file system with these files.
func inMemory(t *testing.T, files map[string][]byte) *memfs.FS {
	t.Helper()
	fsys := memfs.New(memfs.Options{})
	for name, data := range files {
		require.NoError(t, fsys.MkdirAll(t.Context(), path.Dir(name)))
		w, err := fsys.Create(t.Context(), name, core.CreateOptions{})
		require.NoError(t, err)
		_, err = w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return fsys
}

func loaded(t *testing.T, fsys core.FileSystem, version int64) string {
	t.Helper()
	c, err := sparkckpt.Open(t.Context(), fsys, "/ckpt")
	require.NoError(t, err)
	s, err := c.Store(t.Context(), statestore.StoreID{Partition: 1, Name: sweptStore})
	require.NoError(t, err)
	view, err := s.Load(t.Context(), sparkckpt.Version{Number: version})
	require.NoError(t, err)
	var b strings.Builder
	for e := range view.All() {
		fmt.Fprintf(&b, "%x %x\n", e.Key, e.Value)
	}
	return b.String()
}

// work is a writing verb with the versions that it must keep.
type work struct {
	do   func(context.Context, core.Opener, string, StateWorkOptions) (*report.StateWork, []error)
	opts StateWorkOptions
	keep []int64
	// damage changes the files beforehand.
	damage func(files map[string][]byte)
}

func works() map[string]work {
	partition, store := int64(1), sweptStore
	opts := StateWorkOptions{Partition: &partition, Store: &store, Yes: true, Now: func() time.Time { return time.Now().Add(time.Hour) }}
	compact, rollback := opts, opts
	compact.Version, compact.Retain = Newest, 2
	rollback.Version, rollback.BelowCommit = 4, true
	return map[string]work{
		"compact": {StateCompact, compact, []int64{6, 7}, nil},
		"repair": {StateRepair, opts, []int64{1, 2, 3, 4, 5, 6, 7}, func(files map[string][]byte) {
			name := "/ckpt/state/0/1/" + sweptStore + "/6.snapshot"
			files[name] = bytes.Clone(files[name])
			files[name][60] ^= 0xff
		}},
		"rollback": {StateRollback, rollback, []int64{1, 2, 3, 4}, nil},
	}
}

func TestNoFailureOfTheStorageCostsAVersionThatAWritingVerbKeeps(t *testing.T) {
	injected := errors.New("injected")
	for name, w := range works() {
		t.Run(name, func(t *testing.T) {
			files := sparkFiles(t)
			want := map[int64]string{}
			for _, v := range w.keep {
				want[v] = loaded(t, inMemory(t, files), v)
			}
			if w.damage != nil {
				w.damage(files)
			}
			counting := faultfs.Wrap(inMemory(t, files), nil)
			done, problems := w.do(t.Context(), core.OnlyOn(counting), "mem:///ckpt", w.opts)
			require.Empty(t, problems)
			require.Equal(t, report.WorkDone, done.Stores[0].Status)
			total := len(counting.Calls())
			failures := 0
			for i := range total {
				fsys := inMemory(t, files)
				calls := 0
				faulty := faultfs.Wrap(fsys, func(faultfs.Call) faultfs.Fault {
					calls++
					if calls == i+1 {
						return faultfs.Fault{Err: injected}
					}
					return faultfs.Fault{}
				})
				got, problems := w.do(t.Context(), core.OnlyOn(faulty), "mem:///ckpt", w.opts)
				if len(problems) > 0 {
					failures++
					require.ErrorIs(t, errors.Join(problems...), injected, "call %d", i)
				} else {
					require.Equal(t, report.WorkDone, got.Stores[0].Status, "call %d", i)
				}
				for _, v := range w.keep {
					require.Equal(t, want[v], loaded(t, fsys, v), "version %d after a failure of call %d", v, i)
				}
				again, problems := w.do(t.Context(), core.OnlyOn(fsys), "mem:///ckpt", w.opts)
				require.Empty(t, problems, "call %d: the verb can be repeated", i)
				require.Contains(t, []report.WorkStatus{report.WorkDone, report.WorkNothing}, again.Stores[0].Status)
			}
			require.Positive(t, failures)
			t.Logf("%d calls, %d of whose failures surfaced", total, failures)
		})
	}
}

func TestACrashAtAnyStepOfAWritingVerbLeavesWhatItKeeps(t *testing.T) {
	for name, w := range works() {
		t.Run(name, func(t *testing.T) {
			files := sparkFiles(t)
			want := map[int64]string{}
			for _, v := range w.keep {
				want[v] = loaded(t, inMemory(t, files), v)
			}
			if w.damage != nil {
				w.damage(files)
			}
			fsys := inMemory(t, files)
			steps, seed := 0, uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			fsys.OnMutation(func(memfs.Mutation) {
				steps++
				for _, percent := range []int{0, 50, 100} {
					crashed := fsys.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: rand.New(rand.NewPCG(seed, uint64(steps)))})
					for _, v := range w.keep {
						require.Equal(t, want[v], loaded(t, crashed, v), "version %d after a crash at step %d, %d%% of what was not synced survived", v, steps, percent)
					}
				}
			})
			_, problems := w.do(t.Context(), core.OnlyOn(fsys), "mem:///ckpt", w.opts)
			require.Empty(t, problems)
			require.Greater(t, steps, 5)
		})
	}
}
