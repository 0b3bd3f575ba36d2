package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// metadataRig is a claimed job with checkpoint 7, or a savepoint, begun.
type metadataRig struct {
	mem     *memfs.FS
	faults  *faultfs.FS
	storage *core.Storage
	owner   *core.Owner
	pending *core.PendingLocation
	start   int // index of the first call after Begin
}

const rigSavepoints = "/savepoints"

// locations are what a metadata stream can belong to.
var locations = []struct {
	name      string
	savepoint bool
}{{"checkpoint", false}, {"savepoint", true}}

func newMetadataRig(t testing.TB, savepoint bool) *metadataRig {
	t.Helper()
	mem := memfs.New(memfs.Options{})
	r := &metadataRig{mem: mem, faults: faultfs.Wrap(mem, nil)}
	r.storage, r.owner, r.pending = beginOn(t, r.faults, savepoint)
	r.start = r.faults.Count()
	return r
}

func beginOn(t testing.TB, fsys core.FileSystem, savepoint bool) (*core.Storage, *core.Owner, *core.PendingLocation) {
	t.Helper()
	ctx := context.Background()
	storage, err := core.NewStorage(fsys, rigBase, rigJob, core.Options{SavepointDir: "mem:" + rigSavepoints})
	require.NoError(t, err)
	owner, err := storage.Claim(ctx)
	require.NoError(t, err)
	var pending *core.PendingLocation
	if savepoint {
		pending, err = owner.BeginSavepoint(ctx, "")
	} else {
		pending, err = owner.Begin(ctx, 7)
	}
	require.NoError(t, err)
	return storage, owner, pending
}

// stray are the files beside the metadata and the claims, which hold the mark of a savepoint that has no outcome yet.
func (r *metadataRig) stray() []string {
	var names []string
	for _, name := range filesOf(r.mem) {
		if name != r.pending.MetadataName() && path.Base(name) != "owner" && !isSavepointMark(name) {
			names = append(names, name)
		}
	}
	return names
}

func isSavepointMark(name string) bool { return strings.HasSuffix(name, ".begun") }

func (r *metadataRig) visible(t testing.TB) []byte {
	t.Helper()
	return bytesOf(t, r.mem, r.pending.MetadataName())
}

func (r *metadataRig) requireNothing(t testing.TB) {
	t.Helper()
	require.Nil(t, r.visible(t))
	require.Empty(t, r.stray())
	require.Empty(t, r.mem.OpenFiles())
	require.Empty(t, r.faults.OpenFiles())
}

// metadataLife writes content, with a sync in the middle, and finalises.
func (r *metadataRig) metadataLife(ctx context.Context, content []byte) (done *core.Completed, err error) {
	m, err := r.pending.CreateMetadataStream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if _, err := m.Write(content[:len(content)/2]); err != nil {
		return nil, err
	}
	if err := m.Sync(); err != nil {
		return nil, err
	}
	if _, err := m.Write(content[len(content)/2:]); err != nil {
		return nil, err
	}
	return m.CloseAndFinalize()
}

func TestMetadataStreamPublishesInOneStep(t *testing.T) {
	for _, location := range locations {
		for _, size := range []int{0, 10, 1_700_000} {
			t.Run(fmt.Sprintf("%s/%d bytes", location.name, size), func(t *testing.T) {
				// Flink: FsCheckpointMetadataOutputStreamTest.testFileExistence
				// Flink: CheckpointStateOutputStreamTest.testEmptyState
				// Flink: CheckpointStateOutputStreamTest.testWriteAndRead
				generator := loggedRand(t)
				r := newMetadataRig(t, location.savepoint)
				m, err := r.pending.CreateMetadataStream(t.Context())
				require.NoError(t, err)
				content := noise(size)
				for rest := content; len(rest) > 0; {
					n := min(len(rest), 1+generator.IntN(30_000))
					written, err := m.Write(rest[:n])
					require.NoError(t, err)
					require.Equal(t, n, written)
					rest = rest[n:]
					require.Equal(t, int64(len(content)-len(rest)), m.Pos())
				}
				require.Nil(t, r.visible(t))
				require.NoError(t, m.Sync())
				require.Nil(t, r.visible(t), "nothing is published by a sync")

				done, err := m.CloseAndFinalize()
				require.NoError(t, err)
				require.NoError(t, m.Close())
				require.Equal(t, r.pending.CheckpointDir(), done.Dir())
				require.Equal(t, "mem:"+r.pending.CheckpointDir(), done.Pointer)
				require.Equal(t, core.FileHandle{Path: "mem:" + r.pending.MetadataName(), Size: int64(size)}, done.Metadata)
				require.Equal(t, core.FileSystem(r.faults), done.FileSystem())
				id, ok := done.ID()
				require.Equal(t, !location.savepoint, ok)
				require.True(t, !ok || id == 7)
				read, err := done.ReadMetadata(t.Context())
				require.NoError(t, err)
				require.True(t, bytes.Equal(content, read))
				requireState(t, r.mem.CrashClone(memfs.CrashConfig{}), content, &done.Metadata)
				require.Empty(t, r.stray())

				resolved, err := core.ResolvePointer(t.Context(), core.OnlyOn(r.faults), done.Pointer)
				require.NoError(t, err)
				require.Equal(t, done, resolved)
			})
		}
	}
}

func TestMetadataStreamThatIsClosedLeavesNothing(t *testing.T) {
	// Flink: FsCheckpointMetadataOutputStreamTest.testCleanupWhenClosed
	// Flink: CheckpointStateOutputStreamTest.testCleanupWhenClosingStream
	// Better: the temporary is removed too; Flink's recoverable writer leaves it.
	for _, location := range locations {
		for _, size := range []int{0, 10, 1_000_000} {
			r := newMetadataRig(t, location.savepoint)
			m, err := r.pending.CreateMetadataStream(t.Context())
			require.NoError(t, err)
			_, err = m.Write(noise(size))
			require.NoError(t, err)
			require.NoError(t, m.Close())
			require.NoError(t, m.Close())
			r.requireNothing(t)
			_, err = m.CloseAndFinalize()
			require.ErrorIs(t, err, fs.ErrClosed)
			r.requireNothing(t)
		}
	}
}

func TestMetadataStreamRemovesItsFileAlthoughClosingItFails(t *testing.T) {
	// Flink: FsCheckpointMetadataOutputStreamTest.testCleanupWhenCommitFailed
	// Flink: CheckpointStateOutputStreamTest.testCleanupWhenFailingCloseAndGetHandle
	for _, location := range locations {
		for _, op := range []faultfs.Op{faultfs.OpWrite, faultfs.OpClose, faultfs.OpRename} {
			t.Run(location.name+"/"+string(op), func(t *testing.T) {
				r := newMetadataRig(t, location.savepoint)
				m, err := r.pending.CreateMetadataStream(t.Context())
				require.NoError(t, err)
				_, err = m.Write(noise(10))
				require.NoError(t, err)
				r.faults.SetInjector(faultfs.OnOp(op, faultfs.Fault{Err: faultfs.ErrInjected}))
				done, err := m.CloseAndFinalize()
				require.ErrorIs(t, err, faultfs.ErrInjected)
				require.Nil(t, done)
				r.requireNothing(t)
				_, err = m.CloseAndFinalize()
				require.ErrorIs(t, err, faultfs.ErrInjected, "the first outcome is final")
				require.NoError(t, m.Close())
				r.requireNothing(t)
			})
		}
	}
}

func TestMetadataStreamEndsOnce(t *testing.T) {
	for _, location := range locations {
		t.Run(location.name, func(t *testing.T) {
			r := newMetadataRig(t, location.savepoint)
			m, err := r.pending.CreateMetadataStream(t.Context())
			require.NoError(t, err)
			_, err = m.Write(noise(10))
			require.NoError(t, err)
			_, err = m.CloseAndFinalize()
			require.NoError(t, err)
			for range 2 {
				_, err = m.CloseAndFinalize()
				require.ErrorIs(t, err, fs.ErrClosed)
				_, err = m.Write([]byte{1})
				require.ErrorIs(t, err, fs.ErrClosed)
				require.ErrorIs(t, m.Sync(), fs.ErrClosed)
				require.NoError(t, m.Close())
				require.Equal(t, int64(10), m.Pos())
				require.Equal(t, noise(10), r.visible(t))
			}
		})
	}
}

func TestMetadataStreamOfACompleteCheckpointIsRefused(t *testing.T) {
	r := newMetadataRig(t, false)
	_, err := r.metadataLife(t.Context(), noise(10))
	require.NoError(t, err)
	_, err = r.pending.CreateMetadataStream(t.Context())
	require.ErrorIs(t, err, fs.ErrExist)
	require.Empty(t, r.stray())
}

func TestMetadataStreamIsNotDisturbedByLeftovers(t *testing.T) {
	for _, location := range locations {
		r := newMetadataRig(t, location.savepoint)
		putAtomic(t, r.mem, path.Dir(r.pending.MetadataName())+"/._metadata_temp", noise(5))
		abandoned, err := r.pending.CreateMetadataStream(t.Context())
		require.NoError(t, err)
		_, err = abandoned.Write(noise(20))
		require.NoError(t, err)
		_, err = r.metadataLife(t.Context(), noise(10))
		require.NoError(t, err)
		require.Equal(t, noise(10), r.visible(t))
		_, err = abandoned.CloseAndFinalize()
		require.ErrorIs(t, err, fs.ErrExist)
		require.Equal(t, noise(10), r.visible(t))
	}
}

// TestMetadataStreamHasOneWinner lets 16 streams of one checkpoint finish at once.
func TestMetadataStreamHasOneWinner(t *testing.T) {
	for round := range 20 {
		r := newMetadataRig(t, locations[round%2].savepoint)
		const racers = 16
		outcomes := make([]error, racers)
		var start, group sync.WaitGroup
		start.Add(1)
		for i := range racers {
			m, err := r.pending.CreateMetadataStream(t.Context())
			require.NoError(t, err)
			_, err = m.Write(noise(100 + i))
			require.NoError(t, err)
			group.Go(func() {
				start.Wait()
				_, outcomes[i] = m.CloseAndFinalize()
			})
		}
		start.Done()
		group.Wait()
		winners := 0
		for i, err := range outcomes {
			if err == nil {
				winners++
				require.Equal(t, noise(100+i), r.visible(t))
				continue
			}
			require.ErrorIs(t, err, fs.ErrExist)
		}
		require.Equal(t, 1, winners)
		require.Empty(t, r.stray())
		require.Empty(t, r.mem.OpenFiles())
	}
}

func TestMetadataStreamCloseBreaksACallThatHangs(t *testing.T) {
	// Flink: CheckpointStateOutputStreamTest.testCloseDoesNotLock
	for _, location := range locations {
		for _, op := range []faultfs.Op{faultfs.OpWrite, faultfs.OpClose, faultfs.OpRename, faultfs.OpStat} {
			if op == faultfs.OpStat && !location.savepoint {
				continue // only a savepoint asks for its claim
			}
			t.Run(location.name+"/"+string(op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newMetadataRig(t, location.savepoint)
					m, err := r.pending.CreateMetadataStream(t.Context())
					require.NoError(t, err)
					_, err = m.Write(noise(100))
					require.NoError(t, err)
					release := make(chan struct{})
					r.faults.SetInjector(faultfs.OnOp(op, faultfs.Fault{Block: release}))
					outcome := make(chan error, 1)
					go func() { _, err := m.CloseAndFinalize(); outcome <- err }()
					synctest.Wait()
					require.Empty(t, outcome)
					start := time.Now()
					require.NoError(t, m.Close())
					require.ErrorIs(t, <-outcome, fs.ErrClosed)
					require.Zero(t, time.Since(start))
					close(release)
					synctest.Wait()
					r.requireNothing(t)
				})
			})
		}
	}
}

func TestMetadataStreamEndOfItsContextBreaksACallThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMetadataRig(t, false)
		ctx, cancel := context.WithCancel(t.Context())
		m, err := r.pending.CreateMetadataStream(ctx)
		require.NoError(t, err)
		_, err = m.Write(noise(100))
		require.NoError(t, err)
		r.faults.SetInjector(faultfs.OnOp(faultfs.OpClose, faultfs.Fault{Block: make(chan struct{})}))
		outcome := make(chan error, 1)
		go func() { _, err := m.CloseAndFinalize(); outcome <- err }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-outcome, context.Canceled)
		r.requireNothing(t)
	})
}

// TestMetadataStreamIsNeverSeenHalfWritten polls the pointer while the metadata is written.
func TestMetadataStreamIsNeverSeenHalfWritten(t *testing.T) {
	for range 5 {
		r := newMetadataRig(t, false)
		content := noise(300_000)
		finished := make(chan error, 1)
		go func() { _, err := r.metadataLife(context.Background(), content); finished <- err }()
		for seen := false; !seen; {
			done, err := core.ResolvePointer(t.Context(), core.OnlyOn(r.mem), "mem:"+r.pending.CheckpointDir())
			if err != nil {
				require.ErrorIs(t, err, fs.ErrNotExist)
				continue
			}
			read, err := done.ReadMetadata(t.Context())
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, read))
			seen = true
		}
		require.NoError(t, <-finished)
	}
}
