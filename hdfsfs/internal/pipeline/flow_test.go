package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

func TestTheEndOfABlockIsHeldBack(t *testing.T) {
	f := newFakes(t, 1, 1)
	f.serve = []func(*session){func(s *session) {
		if !s.stands() {
			return
		}
		first, _ := s.packet()
		second, _ := s.packet()
		require.NoError(t, s.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		if _, ok := s.packet(); ok {
			t.Errorf("the last packet came before the others were acknowledged")
		}
		require.NoError(t, s.SetReadDeadline(time.Time{}))
		s.confirm(first)
		s.confirm(second)
		s.acknowledge(1)
	}}
	data := content(2000)
	require.NoError(t, writeAll(f.writer(Options{}), nil, data))
	require.Equal(t, data, f.bytes())
}

func TestAcknowledgementsAreWaitedForTogetherInTheMiddleOfAStream(t *testing.T) {
	for underWay, want := range map[int]int{0: 1, 1: 1, 3: 1, 4: 2, 7: 2, 8: 4, 15: 4, 16: 8, 31: 8, 32: 16, 1000: 16} {
		require.Equal(t, want, together(underWay), underWay)
	}
}

// The kernel is told to wait for several acknowledgements. A node that says fewer of them, and nothing more, must not go unheard.
func TestWhatANodeSaysInTheMiddleOfAStreamIsHeardSoon(t *testing.T) {
	f := newFakes(t, 4, 3)
	f.serve = []func(*session){func(s *session) {
		if !s.stands() {
			return
		}
		s.acknowledge(1)
		for range 2 {
			_, _ = s.packet()
		}
		time.Sleep(50 * time.Millisecond) // let the client wait for more
		s.ack(1, wire.Status_SUCCESS, wire.Status_ERROR, wire.Status_SUCCESS)
		silent(s)
	}}
	data := content(100 << 10)
	w := f.writer(Options{Window: 100})
	w.o.BlockSize = 1 << 20
	begin := time.Now()
	require.NoError(t, writeAll(w, nil, data))
	require.Less(t, time.Since(begin), 5*time.Second)
	require.Equal(t, data, f.bytes())
	require.Equal(t, 1, f.count("PIPELINE_SETUP_STREAMING_RECOVERY"))
}

// The kernel must not wait for more behind the rest of the last acknowledgement.
func TestAnAcknowledgementMayComeInTwoPieces(t *testing.T) {
	const packets = 100
	f := newFakes(t, 1, 1)
	f.serve = []func(*session){func(s *session) {
		if !s.stands() {
			return
		}
		var acks []byte
		for range packets {
			h, _ := s.packet()
			acks = wire.AppendPipelineAck(acks, h.Seqno, wire.Status_SUCCESS)
		}
		s.f.mu.Lock()
		s.f.acked[s.block] = packets << 10
		s.f.mu.Unlock()
		_, _ = s.Write(acks[:len(acks)-3])
		time.Sleep(50 * time.Millisecond) // the client takes what is there
		_, _ = s.Write(acks[len(acks)-3:])
		s.acknowledge(1)
	}}
	data := content(packets << 10)
	w := f.writer(Options{Window: 2 * packets})
	w.o.BlockSize = 1 << 20
	begin := time.Now()
	require.NoError(t, writeAll(w, nil, data))
	require.Less(t, time.Since(begin), 5*time.Second)
	require.Equal(t, data, f.bytes())
	require.Zero(t, f.count("RECOVERY"))
}

// A caller that stops in the middle of a block has what it wrote sent, although the streamer likes to send more at once.
func TestWhatIsWrittenIsSentEvenIfNothingFollows(t *testing.T) {
	f := newFakes(t, 1, 1)
	w := f.writer(Options{})
	_, err := w.Write(content(3 << 10))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.data) == 1 && f.acked[f.nextBlock] == 3<<10
	}, 5*time.Second, time.Millisecond)
}
