package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// writeAll writes the content in two parts with a flush between them, so that the first part is acknowledged.
func writeAll(w *Writer, first, second []byte) error {
	for i, part := range [][]byte{first, second} {
		if _, err := w.Write(part); err != nil {
			return err
		}
		if i == 0 && len(first) > 0 {
			if err := w.Sync(false); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

func TestTheWriterGoesOnAfterFaults(t *testing.T) {
	const ok = wire.Status_SUCCESS
	for _, tt := range []struct {
		what          string
		nodes         int
		spare         bool
		first, second int // bytes before and after a flush
		serve         func(f *fakes) []func(*session)
		want          []string
	}{
		{
			"no fault", 3, false, 0, 5000, nil,
			[]string{
				"addBlock after 0 bytes, without 0", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "addBlock after 4096 bytes, without 0",
				"PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "complete 904",
			},
		},
		{
			"a node behind the first cannot be reached at set-up", 4, false, 0, 1500,
			func(f *fakes) []func(*session) {
				link := fmt.Sprintf("127.0.0.1:%d", f.nodes[1].GetId().GetXferPort())
				return []func(*session){func(s *session) { s.answer(wire.Status_ERROR, link) }}
			},
			[]string{
				"addBlock after 0 bytes, without 0", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "abandonBlock",
				"addBlock after 0 bytes, without 1", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "complete 1500",
			},
		},
		{
			"the end of the stream instead of an answer", 4, false, 0, 1500,
			func(*fakes) []func(*session) { return []func(*session){func(*session) {}} },
			[]string{
				"addBlock after 0 bytes, without 0", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "abandonBlock",
				"addBlock after 0 bytes, without 1", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "complete 1500",
			},
		},
		{
			"a node fails before anything is acknowledged: a new block", 4, false, 0, 3000,
			func(*fakes) []func(*session) {
				return []func(*session){func(s *session) {
					s.answer(ok, "")
					_, _ = s.packet()
					s.ack(wire.UnknownSeqno, ok, wire.Status_ERROR)
					_, _ = io.Copy(io.Discard, s.r)
				}}
			},
			[]string{
				"addBlock after 0 bytes, without 0", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "abandonBlock",
				"addBlock after 0 bytes, without 1", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "complete 3000",
			},
		},
		{
			"the last node fails in a block, which goes on with a new one", 3, true, 1000, 3000,
			func(*fakes) []func(*session) {
				return []func(*session){func(s *session) {
					s.answer(ok, "")
					s.acknowledge(1)
					_, _ = s.packet()
					s.ack(wire.UnknownSeqno, ok, ok, wire.Status_ERROR)
					_, _ = io.Copy(io.Discard, s.r)
				}}
			},
			[]string{
				"addBlock after 0 bytes, without 0", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "fsync 1000",
				"getAdditionalDatanode 1 beside 2, without 1", "transfer 1000 bytes", "updateBlockForPipeline",
				"PIPELINE_SETUP_STREAMING_RECOVERY nodes=3 min=1000 max=4000", "updatePipeline to 3 nodes with 1000 bytes, true", "complete 4000",
			},
		},
		{
			"the connection breaks, and there is no other node", 3, false, 1000, 1000,
			func(*fakes) []func(*session) {
				return []func(*session){func(s *session) {
					s.answer(ok, "")
					s.acknowledge(1)
					_, _ = s.packet()
				}}
			},
			[]string{
				"addBlock after 0 bytes, without 0", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "fsync 1000",
				"getAdditionalDatanode 1 beside 2, without 1", "updateBlockForPipeline",
				"PIPELINE_SETUP_STREAMING_RECOVERY nodes=2 min=1000 max=2000", "updatePipeline to 2 nodes with 1000 bytes, true", "complete 2000",
			},
		},
		{
			"a node fails when the block is closed: nothing is sent again", 3, false, 0, 1000,
			func(*fakes) []func(*session) {
				return []func(*session){func(s *session) {
					s.answer(ok, "")
					s.acknowledge(1)
					_, _ = s.packet()
					s.ack(wire.UnknownSeqno, wire.Status_ERROR)
				}}
			},
			[]string{
				"addBlock after 0 bytes, without 0", "PIPELINE_SETUP_CREATE nodes=3 min=0 max=0", "updateBlockForPipeline",
				"PIPELINE_CLOSE_RECOVERY nodes=2 min=1000 max=1000", "updatePipeline to 2 nodes with 1000 bytes, true", "complete 1000",
			},
		},
	} {
		t.Run(tt.what, func(t *testing.T) {
			f := newFakes(t, tt.nodes, 3)
			if tt.spare {
				f.spare = f.listen(99)
			}
			if tt.serve != nil {
				f.serve = tt.serve(f)
			}
			w := f.writer(Options{})
			data := content(tt.first + tt.second)
			require.NoError(t, writeAll(w, data[:tt.first], data[tt.first:]))
			var max []string
			for i, line := range f.said() { // how far a pipeline got before it broke is not known
				if i < len(tt.want) && strings.Contains(tt.want[i], "max=") && strings.Contains(tt.want[i], "RECOVERY") && strings.Contains(line, "max=") {
					line = line[:strings.Index(line, "max=")] + tt.want[i][strings.Index(tt.want[i], "max="):]
				}
				max = append(max, line)
			}
			require.Equal(t, tt.want, max)
			require.Equal(t, data, f.bytes())
		})
	}
}

func TestTheOnlyNodeOfAPipelineMayRestart(t *testing.T) {
	f := newFakes(t, 1, 1)
	f.serve = []func(*session){func(s *session) {
		s.answer(wire.Status_SUCCESS, "")
		s.acknowledge(1)
		_, _ = s.packet()
		s.ack(wire.UnknownSeqno, wire.Status_OOB_RESTART)
	}, func(*session) {}} // it is not up yet
	w := f.writer(Options{Dialer: datanode.NewDialer(datanode.Options{Timeout: 100 * time.Millisecond})})
	data := content(3000)
	require.NoError(t, writeAll(w, data[:1024], data[1024:]))
	require.Equal(t, data, f.bytes())
}

func TestTheEndOfTheLastNodeIsTheEndOfTheFile(t *testing.T) {
	f := newFakes(t, 1, 1)
	f.serve = []func(*session){func(s *session) {
		s.answer(wire.Status_SUCCESS, "")
		s.acknowledge(1)
	}}
	w := f.writer(Options{})
	data := content(3000)
	err := writeAll(w, data[:1024], data[1024:])
	require.ErrorContains(t, err, "all DataNodes of the pipeline have failed")
	require.Equal(t, err, w.Close(), "the first outcome sticks")
	_, again := w.Write([]byte("x"))
	require.Equal(t, err, again)
	require.Equal(t, err, w.Sync(false))
	require.NotContains(t, strings.Join(f.said(), "\n"), "complete")
}

func TestABlockOfTooFewReplicasIsNoSuccess(t *testing.T) {
	f := newFakes(t, 2, 2)
	f.serve = []func(*session){func(s *session) {
		s.answer(wire.Status_SUCCESS, "")
		s.acknowledge(1)
	}}
	w := f.writer(Options{MinReplicas: 2})
	w.placeFor = 300 * time.Millisecond
	data := content(3000)
	require.ErrorIs(t, writeAll(w, data[:1024], data[1024:]), ErrTooFewReplicas)
	require.NotContains(t, strings.Join(f.said(), "\n"), "complete")
}

func TestNodesThatFailAgainAndAgainAreNotTriedForEver(t *testing.T) {
	f := newFakes(t, 9, 3)
	bad := func(*session) {}
	f.serve = []func(*session){bad, bad, bad, bad, bad}
	w := f.writer(Options{})
	err := writeAll(w, nil, content(1000))
	var failed *datanode.NodeError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 4, strings.Count(strings.Join(f.said(), "\n"), "addBlock"))
}

func TestTheNameNodeIsAskedUntilItHasHeardOfTheLastBlock(t *testing.T) {
	f := newFakes(t, 1, 1)
	f.incomplete = 3
	require.NoError(t, writeAll(f.writer(Options{}), nil, content(10)))
	require.Equal(t, 4, strings.Count(strings.Join(f.said(), "\n"), "complete 10"))

	f.incomplete = 1 << 30
	require.ErrorIs(t, writeAll(f.writer(Options{CompleteFor: 20 * time.Millisecond}), nil, content(10)), ErrTooFewReplicas)
}

func TestASilentDataNodeDoesNotOutlastTheContext(t *testing.T) {
	f := newFakes(t, 1, 1)
	silent := func(s *session) { _, _ = io.Copy(io.Discard, s.r) }
	f.serve = []func(*session){silent, silent}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := New(ctx, namenode.File{Path: "/file"}, Options{
		NameNode: f, Replication: 1, BlockSize: 4096, Dialer: datanode.NewDialer(datanode.Options{}),
	})
	require.NoError(t, err)
	_, err = w.Write([]byte("x"))
	require.NoError(t, err)
	var ended time.Time
	time.AfterFunc(50*time.Millisecond, func() {
		ended = time.Now()
		cancel()
	})
	require.ErrorIs(t, w.Close(), context.Canceled)
	require.Less(t, time.Since(ended), 5*time.Second)
	w.Abort()

	w = f.writer(Options{})
	_, err = w.Write(content(100))
	require.NoError(t, err)
	time.AfterFunc(20*time.Millisecond, w.Interrupt)
	require.ErrorIs(t, w.Close(), fs.ErrClosed)
}

func TestAWriterWaitsWhenTheWindowIsFull(t *testing.T) {
	f := newFakes(t, 1, 1)
	free := make(chan struct{})
	f.serve = []func(*session){func(s *session) {
		<-free
		s.good()
	}}
	w := f.writer(Options{Window: 2})
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(content(4096))
		written <- errors.Join(err, w.Close())
	}()
	waiting := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.packets)
	}
	require.Eventually(t, func() bool { return waiting() == 2 }, 10*time.Second, time.Millisecond)
	time.Sleep(20 * time.Millisecond)
	require.Equal(t, 2, waiting())
	close(free)
	require.NoError(t, <-written)
	require.Equal(t, content(4096), f.bytes())
}
