package blockread

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
)

func TestABatchIsPlannedByWhatIsKnownOfTheStream(t *testing.T) {
	s := shape{chunk: 512, prefix: 31, data: 2048}
	const head = 31 + 4*4
	for name, c := range map[string]struct {
		shape
		room, left int
		rest       int64
		ragged     bool
		want       []piece
	}{
		"less room than a chunk":      {s, 511, 2048, 1 << 20, false, nil},
		"a part of a packet":          {s, 1300, 2048, 1 << 20, false, []piece{{data: 1024}}},
		"just a packet":               {s, 2048, 2048, 1 << 20, false, []piece{{2048, head, 2048}}},
		"the end of a packet":         {s, 2048, 512, 1 << 20, false, []piece{{512, head, 2048}, {data: 1536}}},
		"several packets":             {s, 5000, 2048, 1 << 20, false, []piece{{2048, head, 2048}, {2048, head, 2048}, {data: 512}}},
		"no more than so many":        {s, 1 << 20, 2048, 1 << 20, false, repeated(piece{2048, head, 2048}, maxPieces)},
		"up to the end":               {s, 1 << 20, 2048, 2048 + 600, false, []piece{{2048, head, 2048}, {2048, 31 + 8, 600}, {600, 31, 0}}},
		"the end may be elsewhere":    {s, 1 << 20, 2048, 2048 + 600, true, []piece{{2048, head, 2048}, {2048, 31 + 8, 600}}},
		"the last packet has begun":   {s, 1 << 20, 600, 0, true, []piece{{600, 31, 0}}},
		"heads are longer than usual": {shape{1, 31, 2048}, 1 << 20, 2048, 1 << 20, false, []piece{{data: 2048}}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, plan(nil, c.shape, c.room, c.left, c.rest, c.ragged))
		})
	}
}

func repeated(p piece, n int) (all []piece) {
	for range n {
		all = append(all, p)
	}
	return all
}

func TestWhatFollowsAHeadThatWasNotForeseenIsPutBackInItsOrder(t *testing.T) {
	pieces := []piece{{3, 2, 3}, {3, 2, 3}, {2, 0, 0}}
	for got, want := range []string{"", "h", "hi", "hid", "hide", "hidef", "hidefj", "hidefjk", "hidefjkg", "hidefjkgx"} {
		require.Equal(t, want, string(remainder([]byte("defgx"), []byte("hijk"), pieces, got)))
	}
}

func TestAWaitIsForNoMoreThanIsToComeOrHasRoom(t *testing.T) {
	for _, c := range []struct {
		owed   int64
		buffer int
		want   int
	}{
		{1 << 30, 128 << 10, lowWaterFirst},
		{1 << 30, 64 << 10, 1},
		{1 << 30, 8 << 20, lowWater},
		{lowWater, 8 << 20, lowWater},
		{lowWater - 1, 8 << 20, lowWaterFirst},
		{lowWaterFirst - 1, 8 << 20, 1},
		{-5, 8 << 20, 1},
		{1 << 30, 0, 1},
	} {
		require.Equal(t, c.want, levelFor(c.owed, c.buffer), "%+v", c)
	}
}

// wrapped is a connection that can only be read by its Read.
type wrapped struct{ net.Conn }

func dialWrapped(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return wrapped{c}, err
}

// newLargeFake has one block of some MiB.
func newLargeFake(t *testing.T, size int, o Options, change ...func(*fakeNode)) *fake {
	f := newFake(t, 2, 0, o, change...)
	f.content = content(size)
	f.blocks = [][]byte{f.content}
	for _, n := range f.datanodes {
		n.blocks[f.id(0)] = f.content
	}
	return f
}

func TestLargeBlocksAreReadWhateverTheConnectionAndThePacketsAreLike(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){"plain": nil, "wrapped": dialWrapped} {
		for _, size := range []int{4 << 20, 4<<20 + 777} {
			for _, vary := range []bool{false, true} {
				t.Run(fmt.Sprint(name, size, vary), func(t *testing.T) {
					f := newLargeFake(t, size, Options{Dialer: datanode.NewDialer(datanode.Options{Dial: dial, Timeout: 5 * time.Second})})
					random := rand.New(rand.NewPCG(seed, 1))
					if vary {
						f.datanodes[0].vary = func() int { return 512 * (1 + random.IntN(200)) }
					}
					for _, piece := range []int{4 << 10, 200_000, 3 << 20} {
						require.True(t, bytes.Equal(f.content, readInPieces(t, f.file(t), piece)), "pieces of %d", piece)
						p := make([]byte, 1<<20)
						off := random.IntN(size - len(p))
						n, err := f.file(t).ReadAt(p, int64(off))
						require.NoError(t, err)
						require.True(t, bytes.Equal(f.content[off:off+n], p), "at %d", off)
					}
					require.Zero(t, f.datanodes[1].requests.Load(), "the node has failed")
					require.EqualValues(t, 1, f.datanodes[0].connections.Load(), "a connection was not used again")
				})
			}
		}
	}
}

func TestBytesBeforeDamageInALargeReadAreReportedAndNoOthers(t *testing.T) {
	for _, at := range []int64{0, 70_000, 65_536, 65_535, 400_000, 1<<20 - 1} {
		f := newLargeFake(t, 1<<20, Options{RetryFor: -1})
		for _, n := range f.datanodes {
			n.flip = flipAt(1000, at)
		}
		p := make([]byte, 1<<20)
		n, err := f.file(t).ReadAt(p, 0)
		require.Error(t, err)
		require.EqualValues(t, at/512*512, n)
		require.True(t, bytes.Equal(f.content[:n], p[:n]))
	}
}

func TestWhatHasComeBeforeAConnectionBreaksCounts(t *testing.T) {
	f := newLargeFake(t, 2<<20, Options{RetryFor: -1})
	for _, n := range f.datanodes {
		n.cut = func(sent int) bool { return sent > 300_000 } // each time
	}
	require.True(t, bytes.Equal(f.content, readInPieces(t, f.file(t), 2<<20)))
}

func TestANodeThatSendsLittleAtATimeIsNotSilent(t *testing.T) {
	const timeout = 200 * time.Millisecond
	f := newLargeFake(t, 1<<20, Options{Dialer: datanode.NewDialer(datanode.Options{Timeout: timeout})})
	f.datanodes[0].trickle = func() { time.Sleep(timeout / 4) } // what it is about
	p := make([]byte, 40<<10)
	_, err := f.file(t).ReadAt(p, 0)
	require.NoError(t, err)
	require.True(t, bytes.Equal(f.content[:len(p)], p))
	require.EqualValues(t, 1, f.datanodes[0].requests.Load())
	require.Zero(t, f.datanodes[1].requests.Load())
}

func TestWhatHasComeIsNotHeldBackWhileANodePauses(t *testing.T) {
	f := newLargeFake(t, 8<<20, Options{Dialer: datanode.NewDialer(datanode.Options{Timeout: time.Minute})})
	goOn := make(chan struct{})
	letGo := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(letGo)
	const before = 5<<20 + 100<<10 // it ends below the low-water mark behind what a large read has taken
	f.datanodes[0].cut = func(sent int) bool {
		if sent > before {
			<-goOn
		}
		return false
	}
	file, begin := f.file(t), time.Now()
	p := make([]byte, before/(64<<10)*(64<<10))
	_, err := io.ReadFull(file, p)
	require.NoError(t, err)
	require.True(t, bytes.Equal(f.content[:len(p)], p))
	require.Less(t, time.Since(begin), 10*time.Second)
	time.AfterFunc(togetherFor*3/2, letGo) // longer than several bytes are waited for
	require.True(t, bytes.Equal(f.content[len(p):], readInPieces(t, file, 1<<20)))
	require.EqualValues(t, 1, f.datanodes[0].requests.Load())
	require.Zero(t, f.datanodes[1].requests.Load())
}

func TestANodeThatStopsInMidStreamIsLeftAfterTheTimeout(t *testing.T) {
	const timeout = 200 * time.Millisecond
	f := newLargeFake(t, 4<<20, Options{Dialer: datanode.NewDialer(datanode.Options{Timeout: timeout})})
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	f.datanodes[0].cut = func(sent int) bool {
		if sent > 1<<20 {
			<-stop
		}
		return false
	}
	begin := time.Now()
	require.True(t, bytes.Equal(f.content, readInPieces(t, f.file(t), 1<<20)))
	require.Less(t, time.Since(begin), 10*timeout)
	require.Greater(t, time.Since(begin), timeout*7/8)
	require.EqualValues(t, 1, f.datanodes[1].requests.Load())
}

func TestAReadThatHasItsBytesDoesNotWaitForTheEndOfTheStream(t *testing.T) {
	f := newFake(t, 1, fakeBlock, Options{Dialer: datanode.NewDialer(datanode.Options{Timeout: time.Minute})})
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	f.datanodes[0].last = func() { <-stop }
	begin := time.Now()
	require.True(t, bytes.Equal(f.content, readInPieces(t, f.file(t), 1<<20)))
	require.Less(t, time.Since(begin), 10*lastWait)
}
