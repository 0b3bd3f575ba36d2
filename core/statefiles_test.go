package core_test

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

func TestAFileOfManySegmentsIsOpenedOnce(t *testing.T) {
	r, handles := damagedSegments(t, func(data []byte) []byte { return data })
	alone, err := writeExclusive(t, r, noise(500))
	require.NoError(t, err)
	before := r.count(faultfs.OpOpen)
	files := core.NewStateFiles(t.Context(), core.OnlyOn(r.faults))
	var readers sync.WaitGroup
	for i, handle := range handles {
		readers.Go(func() {
			reader, err := files.Open(handle)
			if err != nil {
				t.Error(err)
				return
			}
			data, err := io.ReadAll(reader)
			if err = errors.Join(err, reader.Close()); err != nil || string(data) != string(noise(100+i)) {
				t.Errorf("segment %d: %v", i, err)
			}
		})
	}
	readers.Wait()
	require.Equal(t, before+1, r.count(faultfs.OpOpen))
	reader, err := files.Open(alone)
	require.NoError(t, err)
	data, err := io.ReadAll(reader)
	require.NoError(t, errors.Join(err, reader.Close()))
	require.Equal(t, noise(500), data)

	part, err := files.Open(handles[0])
	require.NoError(t, err)
	require.NoError(t, files.Close())
	require.NoError(t, files.Close())
	_, err = io.ReadAll(part)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = files.Open(handles[0])
	require.ErrorIs(t, err, fs.ErrClosed)
	require.Empty(t, r.faults.OpenFiles())
}

func TestAFileThatCouldNotBeOpenedIsTriedAgain(t *testing.T) {
	r, handles := damagedSegments(t, func(data []byte) []byte { return data })
	files := core.NewStateFiles(t.Context(), core.OnlyOn(r.faults))
	r.faults.SetInjector(faultfs.OnOp(faultfs.OpOpen, faultfs.Fault{Err: core.ErrUnavailable}))
	_, err := files.Open(handles[0])
	require.ErrorIs(t, err, core.ErrUnavailable)
	r.faults.SetInjector(nil)
	_, err = files.Open(handles[0])
	require.NoError(t, err)
	require.NoError(t, files.Close())
}

func writeExclusive(t *testing.T, r *streamRig, state []byte) (core.StreamHandle, error) {
	t.Helper()
	stream := r.exclusive(t.Context())
	if _, err := stream.Write(state); err != nil {
		return nil, err
	}
	return stream.CloseAndGetHandle()
}
