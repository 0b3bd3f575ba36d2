package cli

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// jobID is that of the job that the tests write themselves.
var jobID = core.JobIDOf("test job")

// sharedSize is more than one chunk of checksums.
const sharedSize = core.ChecksumChunk + 500<<10

// job writes checkpoints with the library.
type job struct {
	t     *testing.T
	r     *rig
	owner *core.Owner
	// shared is a file that all checkpoints need.
	shared core.StreamHandle
}

// newJob claims the directory of a job in the directory base below the root.
func (r *rig) newJob(base string, id core.JobID) *job {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(r.path(base), 0o755))
	serial := uint64(0)
	storage, err := core.NewStorage(r.fsys, r.path(base), id, core.Options{
		InlineThreshold: 100,
		NewUUID: func() (uuid.UUID, error) {
			serial++
			u := uuid.UUID{6: 0x40, 8: 0x80}
			binary.BigEndian.PutUint32(u[:], uint32(serial))
			return u, nil
		},
	})
	require.NoError(r.t, err)
	owner, err := storage.Claim(r.t.Context())
	require.NoError(r.t, err)
	return &job{t: r.t, r: r, owner: owner}
}

func (j *job) dir() string { return j.owner.Storage().JobDir() }

func (j *job) write(stream *core.StateStream, size int) core.StreamHandle {
	j.t.Helper()
	_, err := stream.Write(bytes.Repeat([]byte{'x'}, size))
	require.NoError(j.t, err)
	handle, err := stream.CloseAndGetHandle()
	require.NoError(j.t, err)
	return handle
}

// checkpoint takes checkpoint id: two operators of two subtasks, with inline state, three files of its own and a shared one.
func (j *job) checkpoint(id int64) *core.Completed {
	j.t.Helper()
	location, err := j.owner.Begin(j.t.Context(), id)
	require.NoError(j.t, err)
	return j.complete(location, id, metadata.KindCheckpoint)
}

// savepoint takes a savepoint to a directory below the root.
func (j *job) savepoint(dir string, id int64) *core.Completed {
	j.t.Helper()
	require.NoError(j.t, os.MkdirAll(j.r.path(dir), 0o755))
	location, err := j.owner.BeginSavepoint(j.t.Context(), core.Qualify("file://", j.r.path(dir)))
	require.NoError(j.t, err)
	return j.complete(location, id, metadata.KindSavepoint)
}

func (j *job) complete(location *core.PendingLocation, id int64, kind metadata.Kind) *core.Completed {
	j.t.Helper()
	ctx := j.t.Context()
	exclusive := func(size int) core.StreamHandle {
		return j.write(location.CreateStateStream(ctx, core.Exclusive), size)
	}
	shared := j.shared
	if shared == nil || kind == metadata.KindSavepoint {
		shared = j.write(location.CreateStateStream(ctx, core.Shared), sharedSize)
	}
	if kind == metadata.KindCheckpoint {
		j.shared = shared
	}
	properties := metadata.CheckpointProperties(metadata.RetainOnCancellation)
	if kind == metadata.KindSavepoint {
		properties = metadata.SavepointProperties(true)
	}
	c := &metadata.Checkpoint{ID: id, Properties: properties, Operators: []metadata.OperatorState{
		{
			Name: "source: lines", UID: "source", ID: metadata.OperatorID{0: 1}, Parallelism: 2, MaxParallelism: 128,
			Coordinator: &core.BytesHandle{Name: "coordinator", Data: make([]byte, 16)},
			Subtasks: []metadata.Subtask{
				{Index: 0, State: &metadata.SubtaskState{ManagedOperator: offsets(exclusive(40))}},
				{Index: 1, State: &metadata.SubtaskState{ManagedOperator: offsets(exclusive(60))}},
			},
		},
		{
			Name: "count", UID: "count", ID: metadata.OperatorID{0: 2}, Parallelism: 2, MaxParallelism: 128,
			Subtasks: []metadata.Subtask{
				{Index: 0, State: &metadata.SubtaskState{ManagedKeyed: keyGroups(0, exclusive(300<<10))}},
				{Index: 1, State: &metadata.SubtaskState{ManagedKeyed: &metadata.IncrementalHandle{
					CheckpointID: id, BackendID: uuid.UUID{}.String(), Range: metadata.KeyGroupRange{Start: 64, Count: 64}, PersistedSize: 700,
					Meta: exclusive(300), Private: []metadata.NamedFile{{LocalPath: "CURRENT", Handle: exclusive(400)}},
					Shared: []metadata.NamedFile{{LocalPath: "000010.sst", Handle: shared}}, ID: uuid.UUID{1: 1}.String(),
				}}},
			},
		},
	}}
	data, err := metadata.Append(nil, c, metadata.WriteOptions{
		Footer: &metadata.Footer{Created: taken, Kind: kind, Durability: core.Synced},
	})
	require.NoError(j.t, err)
	stream, err := location.CreateMetadataStream(ctx)
	require.NoError(j.t, err)
	_, err = stream.Write(data)
	require.NoError(j.t, err)
	completed, err := stream.CloseAndFinalize()
	require.NoError(j.t, err)
	j.r.age()
	return completed
}

func offsets(delegate core.StreamHandle) *metadata.OperatorHandle {
	return metadata.NewOperatorHandle([]metadata.NamedState{{Name: "offsets", Mode: metadata.SplitDistribute, Offsets: []int64{0, 20}}}, delegate)
}

func keyGroups(start int32, delegate core.StreamHandle) *metadata.KeyGroupsHandle {
	return &metadata.KeyGroupsHandle{
		Range: metadata.KeyGroupRange{Start: start, Count: 64}, Offsets: make([]int64, 64), Delegate: delegate, ID: uuid.UUID{1: 2}.String(),
	}
}

// begin leaves a checkpoint in progress.
func (j *job) begin(id int64) {
	j.t.Helper()
	location, err := j.owner.Begin(j.t.Context(), id)
	require.NoError(j.t, err)
	j.write(location.CreateStateStream(j.t.Context(), core.Exclusive), 1000)
	j.r.age()
}

// files lists the state files in a directory of the job, such as "chk-3" or "shared".
func (j *job) files(dir string) []string {
	j.t.Helper()
	entries, err := os.ReadDir(path.Join(j.dir(), dir))
	require.NoError(j.t, err)
	var names []string
	for _, entry := range entries {
		if core.IsStateFileName(entry.Name()) {
			names = append(names, path.Join(j.dir(), dir, entry.Name()))
		}
	}
	return names
}

// damage inverts a byte of a file.
func damage(t *testing.T, name string, offset int64) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	var b [1]byte
	_, err = file.ReadAt(b[:], offset)
	require.NoError(t, err)
	b[0] ^= 0xff
	_, err = file.WriteAt(b[:], offset)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// bare writes a checkpoint whose one subtask has the given keyed state to a directory below the root.
func (r *rig) bare(dir string, keyed metadata.KeyedHandle) string {
	r.t.Helper()
	c := &metadata.Checkpoint{ID: 1, Operators: []metadata.OperatorState{{
		ID: metadata.OperatorID{0: 1}, Parallelism: 1, MaxParallelism: 128,
		Subtasks: []metadata.Subtask{{State: &metadata.SubtaskState{ManagedKeyed: keyed}}},
	}}}
	data, err := metadata.Append(nil, c, metadata.WriteOptions{Version: 6})
	require.NoError(r.t, err)
	r.file(path.Join(dir, core.MetadataName), data)
	return r.path(dir)
}

// file writes a file below the root.
func (r *rig) file(name string, data []byte) {
	r.t.Helper()
	require.NoError(r.t, os.MkdirAll(path.Dir(r.path(name)), 0o755))
	require.NoError(r.t, os.WriteFile(r.path(name), data, 0o600))
	r.age()
}
