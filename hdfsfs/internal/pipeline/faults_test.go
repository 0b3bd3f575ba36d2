package pipeline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

func (f *fakes) count(what string) int { return strings.Count(strings.Join(f.said(), "\n"), what) }

// A file may be open for hours without a byte being written.
func TestAnIdlePipelineIsKeptAlive(t *testing.T) {
	f := newFakes(t, 1, 1)
	w := f.writer(Options{Dialer: datanode.NewDialer(datanode.Options{Timeout: 200 * time.Millisecond})})
	w.extension = 0
	data := content(3000)
	_, err := w.Write(data[:1000])
	require.NoError(t, err)
	require.NoError(t, w.Sync(false))
	time.Sleep(time.Second) // more than any deadline of the connection
	_, err = w.Write(data[1000:])
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, data, f.bytes())
	require.Zero(t, f.count("RECOVERY"))
	f.mu.Lock()
	defer f.mu.Unlock()
	require.GreaterOrEqual(t, f.beats, 4)
}

// A pipeline that stands and breaks before it has acknowledged anything is no progress.
func TestPipelinesThatStandAndBreakAreNotTriedForEver(t *testing.T) {
	f := newFakes(t, 9, 3)
	for range 100 {
		f.serve = append(f.serve, brokenAfter(0))
	}
	require.ErrorContains(t, writeAll(f.writer(Options{}), nil, content(5000)), "a block could not be begun on 4 pipelines")
	require.Equal(t, 4, f.count("addBlock"))
}

func TestABlockWaitsForDataNodes(t *testing.T) {
	f := newFakes(t, 2, 2)
	f.nobody = 3 // a NameNode that has just started knows of none
	data := content(5000)
	require.NoError(t, writeAll(f.writer(Options{MinReplicas: 2}), nil, data))
	require.Equal(t, data, f.bytes())
	require.Equal(t, 5, f.count("addBlock"))
}

func TestABlockDoesNotWaitForDataNodesForEver(t *testing.T) {
	f := newFakes(t, 2, 2)
	f.nobody = 1 << 30
	w := f.writer(Options{})
	w.placeFor = 300 * time.Millisecond
	begin := time.Now()
	require.ErrorContains(t, writeAll(w, nil, content(10)), "could only be written to 0 of the 1 minReplication nodes")
	require.GreaterOrEqual(t, time.Since(begin), w.placeFor)

	f = newFakes(t, 1, 2) // one node of the two that must be
	w = f.writer(Options{MinReplicas: 2})
	w.placeFor = 300 * time.Millisecond
	require.ErrorIs(t, writeAll(w, nil, content(10)), ErrTooFewReplicas)
	require.Equal(t, f.count("addBlock"), f.count("abandonBlock"))
}

func TestANodeThatHasFailedGetsAnotherChanceWhereABlockWouldHaveTooFew(t *testing.T) {
	f := newFakes(t, 2, 2)
	f.serve = []func(*session){func(s *session) {
		s.answer(wire.Status_ERROR, fmt.Sprintf("127.0.0.1:%d", f.nodes[1].GetId().GetXferPort()))
	}}
	data := content(5000)
	w := f.writer(Options{MinReplicas: 2})
	require.NoError(t, writeAll(w, nil, data))
	require.Equal(t, data, f.bytes())
	require.Equal(t, 2, w.Replicas())
	require.Equal(t, []string{
		"addBlock after 0 bytes, without 0", "PIPELINE_SETUP_CREATE nodes=2 min=0 max=0", "abandonBlock",
		"addBlock after 0 bytes, without 1", "abandonBlock", "addBlock after 0 bytes, without 0",
	}, f.said()[:6])
}

func TestANodeIsWaitedForThatRestartsIfThePipelineNeedsIt(t *testing.T) {
	f := newFakes(t, 2, 2)
	f.serve = []func(*session){func(s *session) {
		s.answer(wire.Status_SUCCESS, "")
		s.acknowledge(1)
		_, _ = s.packet()
		s.ack(wire.UnknownSeqno, wire.Status_SUCCESS, wire.Status_OOB_RESTART)
		silent(s)
	}}
	w := f.writer(Options{MinReplicas: 2, Dialer: datanode.NewDialer(datanode.Options{Timeout: 50 * time.Millisecond})})
	data := content(3000)
	require.NoError(t, writeAll(w, nil, data))
	require.Equal(t, data, f.bytes())
	require.Equal(t, 1, f.count("PIPELINE_SETUP_STREAMING_RECOVERY nodes=2"))
}

func TestABlockThatIsClosedGetsANodeOnlyIfItMust(t *testing.T) {
	for _, tt := range []struct {
		must, nodes, transfers int
	}{{2, 2, 0}, {3, 3, 1}} {
		f := newFakes(t, 3, 3)
		f.spare = f.listen(99)
		f.serve = []func(*session){func(s *session) {
			s.answer(wire.Status_SUCCESS, "")
			s.acknowledge(1)
			_, _ = s.packet()
			s.ack(wire.UnknownSeqno, wire.Status_SUCCESS, wire.Status_ERROR)
			silent(s)
		}}
		w := f.writer(Options{MinReplicas: tt.must})
		data := content(1000)
		_, err := w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Sync(false))
		require.NoError(t, w.Close())
		require.Equal(t, data, f.bytes())
		require.Equal(t, tt.nodes, w.Replicas())
		require.Equal(t, tt.transfers, f.count("transfer"))
		require.Equal(t, 1, f.count(fmt.Sprintf("PIPELINE_CLOSE_RECOVERY nodes=%d min=1000 max=1000", tt.nodes)))
	}
}

// More than one node of a pipeline may be dead, which says nothing of the node that is to be added.
func TestABlockIsCopiedByANodeThatLives(t *testing.T) {
	f := newFakes(t, 3, 3)
	dead := f.listen(50)
	require.NoError(t, f.listeners[3].Close())
	f.listeners = f.listeners[:3]
	w := f.writer(Options{})
	located := f.located([]*wire.DatanodeInfo{dead, f.nodes[0], f.nodes[1]})
	spare := membersOf(f.located(f.nodes[2:]))
	require.True(t, w.copyTo(membersOf(located), spare, located.GetB(), located.GetBlockToken()))
	require.Equal(t, 1, f.count("transfer"))

	f.hang["no transfer"] = true
	require.False(t, w.copyTo(membersOf(located), spare, located.GetB(), located.GetBlockToken()))
	require.Equal(t, 2, f.count("transfer"), "a node that answers has tried it")
}

func TestAnAcknowledgementThatANodeHasNotGivenIsNone(t *testing.T) {
	f := newFakes(t, 3, 3)
	f.serve = []func(*session){func(s *session) {
		s.answer(wire.Status_SUCCESS, "")
		s.acknowledge(1)
		h, _ := s.packet()
		s.ack(h.Seqno, wire.Status_SUCCESS, wire.Status_SUCCESS)
		silent(s)
	}}
	w := f.writer(Options{})
	data := content(3000)
	require.NoError(t, writeAll(w, nil, data))
	require.Equal(t, data, f.bytes())
	require.Equal(t, 2, w.Replicas())
}

// A node that acknowledges what it cannot have got makes nothing change that is on its way.
func TestAPacketIsNotUsedAgainBeforeItIsWritten(t *testing.T) {
	w := newFakes(t, 1, 1).writer(Options{})
	k := w.o.Pool.get(100)
	w.mu.Lock()
	w.writing = true
	w.recycle(k)
	require.Equal(t, []*packet{k}, w.retired)
	w.mu.Unlock()
	w.written()
	require.Empty(t, w.retired)
	require.False(t, w.writing)
}

// misfortune is what a pipeline may do.
func misfortune(random *rand.Rand) func(*session) {
	packets, kind, bad := random.IntN(7), random.IntN(6), random.IntN(3)
	return func(s *session) {
		bad := min(bad, int(s.request.GetPipelineSize())-1)
		replies := make([]wire.Status, bad+1)
		replies[bad] = wire.Status_ERROR
		if kind == 0 { // it does not stand
			s.answer(wire.Status_ERROR, fmt.Sprintf("127.0.0.1:%d", s.f.nodes[bad].GetId().GetXferPort()))
			return
		}
		if !s.stands() {
			return
		}
		s.acknowledge(packets)
		h, ok := s.packet()
		switch {
		case !ok, kind == 1: // the end of the stream
		case kind == 2:
			s.ack(wire.UnknownSeqno, replies...)
			silent(s)
		case kind == 3: // the last replies are lost
			s.f.mu.Lock()
			s.f.finished[s.block] = s.f.finished[s.block] || h.Last
			s.f.mu.Unlock()
			s.ack(h.Seqno, replies...)
			silent(s)
		case kind == 4:
			s.ack(h.Seqno + 7)
			silent(s)
		default: // garbage
			_, _ = s.Write([]byte{3, 0xff, 0xff, 0xff})
			silent(s)
		}
	}
}

// Whatever happens to pipelines, what Sync and Close say is true.
func TestNoByteIsLostByRandomFaults(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	closed := 0
	goroutines, descriptors := left(t)
	for round := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, round))
		f := newFakes(t, 12, 3)
		f.spare = f.listen(99)
		for range random.IntN(6) {
			f.serve = append(f.serve, misfortune(random))
		}
		w := f.writer(Options{Window: 2 + random.IntN(20), MaxRecoveries: 9, BlockRetries: 9})
		data := content(1 + random.IntN(20000))
		err := error(nil)
		for at := 0; at < len(data) && err == nil; {
			n := min(1+random.IntN(3000), len(data)-at)
			_, err = w.Write(data[at : at+n])
			if at += n; err == nil && random.IntN(3) == 0 {
				if err = w.Sync(random.IntN(2) == 0); err == nil {
					require.True(t, bytes.HasPrefix(f.bytes(), data[:at]), "round %d: synced bytes are not there", round)
				}
			}
		}
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			require.Equal(t, data, f.bytes(), "round %d", round)
			closed++
		}
		w.Abort()
		f.close()
		require.False(t, t.Failed(), "round %d: %v\n%s", round, err, strings.Join(f.said(), "\n"))
	}
	requireNothingLeft(t, goroutines, descriptors)
	t.Logf("%d of 200 files were closed", closed)
	require.Greater(t, closed, 100)
}
