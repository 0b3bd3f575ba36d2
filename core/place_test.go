package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func TestTheDirectoryOfALocationThatAFileLiesIn(t *testing.T) {
	fsys := memfs.New(memfs.Options{})
	job := core.JobIDOf("places")
	storage, err := core.NewStorage(fsys, "/c", job, core.Options{})
	require.NoError(t, err)
	checkpoint, err := storage.ResolveLocation(t.Context(), 7, nil)
	require.NoError(t, err)
	savepoint, err := storage.ResolveLocation(t.Context(), 7, core.EncodeReference("mem:/s/savepoint"))
	require.NoError(t, err)
	dir := "mem:/c/" + job.String()
	for path, want := range map[string]struct{ checkpoint, savepoint core.Place }{
		dir + "/chk-7/f":                      {core.InCheckpointDir, core.Elsewhere},
		"mem://" + dir[4:] + "/chk-7/f":       {core.InCheckpointDir, core.Elsewhere},
		dir[4:] + "/chk-7/f":                  {core.InCheckpointDir, core.Elsewhere},
		dir + "/chk-7/../chk-7//f":            {core.InCheckpointDir, core.Elsewhere},
		dir + "/chk-7/sub/f":                  {core.Elsewhere, core.Elsewhere},
		dir + "/chk-7":                        {core.Elsewhere, core.Elsewhere},
		dir + "/chk-77/f":                     {core.Elsewhere, core.Elsewhere},
		dir + "/shared/f":                     {core.InSharedDir, core.Elsewhere},
		dir + "/shared/job_x/f":               {core.InSharedDir, core.Elsewhere},
		dir + "/shared":                       {core.Elsewhere, core.Elsewhere},
		dir + "/taskowned/f":                  {core.InTaskOwnedDir, core.Elsewhere},
		dir + "/f":                            {core.Elsewhere, core.Elsewhere},
		"mem:/s/savepoint/f":                  {core.Elsewhere, core.InCheckpointDir},
		"mem:/s/savepoint/sub/f":              {core.Elsewhere, core.Elsewhere},
		"hdfs://ns1" + dir[4:] + "/chk-7/f":   {core.Elsewhere, core.Elsewhere},
		"hdfs://ns1" + dir[4:] + "/shared/f":  {core.Elsewhere, core.Elsewhere},
		"chk-7/f":                             {core.Elsewhere, core.Elsewhere},
		dir + "/chk-7/../shared/f":            {core.InSharedDir, core.Elsewhere},
		"mem:/c/x/" + job.String() + "/chk-7": {core.Elsewhere, core.Elsewhere},
	} {
		require.Equal(t, want.checkpoint, checkpoint.Place(path), path)
		require.Equal(t, want.savepoint, savepoint.Place(path), path)
	}
}

func TestAnEntropyMarkerStandsForRandomCharacters(t *testing.T) {
	fsys, err := core.WithEntropy(memfs.New(memfs.Options{}), "_e_", 4)
	require.NoError(t, err)
	job := core.JobIDOf("places")
	storage, err := core.NewStorage(fsys, "/c/_e_/d", job, core.Options{InlineThreshold: core.NeverInline})
	require.NoError(t, err)
	owner, err := storage.Claim(t.Context())
	require.NoError(t, err)
	location, err := owner.Begin(t.Context(), 7)
	require.NoError(t, err)
	for scope, want := range map[core.Scope]core.Place{core.Exclusive: core.InCheckpointDir, core.Shared: core.InSharedDir} {
		stream := location.CreateStateStream(t.Context(), scope)
		_, err = stream.Write([]byte("x"))
		require.NoError(t, err)
		handle, err := stream.CloseAndGetHandle()
		require.NoError(t, err)
		file, ok := handle.(*core.FileHandle)
		require.True(t, ok)
		require.Equal(t, want, location.Place(file.Path), file.Path)
	}
	for _, path := range []string{"/c/abc/d/", "/c/abcde/d/", "/c/abcX/d/", "/c/_e_/d/", "/x/abcd/d/"} {
		require.Equal(t, core.Elsewhere, location.Place("mem:"+path+job.String()+"/chk-7/f"), path)
	}
}
