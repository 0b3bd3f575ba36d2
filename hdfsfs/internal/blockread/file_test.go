package blockread

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// readInPieces reads all of a file by Read.
func readInPieces(t *testing.T, f *File, piece int) []byte {
	var got []byte
	p := make([]byte, piece)
	for {
		n, err := f.Read(p)
		got = append(got, p[:n]...)
		if errors.Is(err, io.EOF) {
			require.Zero(t, n)
			return got
		}
		require.NoError(t, err)
		require.Positive(t, n)
	}
}

func TestFilesAreReadAsTheyAreWhateverTheirChunksAndPackets(t *testing.T) {
	for _, chunk := range []int{512, 4096, 1000, 1} {
		for _, packet := range []int{1, 2, 16, 200} { // chunks
			for _, kind := range []wire.ChecksumType{wire.ChecksumType_CHECKSUM_CRC32C, wire.ChecksumType_CHECKSUM_CRC32} {
				if chunk == 1 && packet < 200 {
					continue
				}
				t.Run(fmt.Sprint(chunk, packet, kind), func(t *testing.T) {
					f := newFake(t, 1, 2*fakeBlock+777, Options{Prefetch: fakeBlock}, func(n *fakeNode) {
						n.chunk, n.packet, n.kind = chunk, packet*chunk, kind
					})
					for _, piece := range []int{313, 4096, 100_000, 1 << 20} {
						require.True(t, bytes.Equal(f.content, readInPieces(t, f.file(t), piece)), "pieces of %d", piece)
					}
					file := f.file(t)
					random := rand.New(rand.NewPCG(1, 2))
					for range 30 {
						off := random.IntN(len(f.content))
						p := make([]byte, 1+random.IntN(fakeBlock))
						n, err := file.ReadAt(p, int64(off))
						if off+len(p) > len(f.content) {
							require.ErrorIs(t, err, io.EOF)
						} else {
							require.NoError(t, err)
						}
						require.Equal(t, min(len(p), len(f.content)-off), n)
						require.True(t, bytes.Equal(f.content[off:off+n], p[:n]), "at %d", off)
					}
				})
			}
		}
	}
}

func TestSeekAndReadAgreeWithABytesReader(t *testing.T) {
	f := newFake(t, 2, 3*fakeBlock, Options{})
	file, model := f.file(t), bytes.NewReader(f.content)
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		switch random.IntN(3) {
		case 0:
			whence, off := random.IntN(3), random.Int64N(fakeBlock)-fakeBlock/4
			at, err := file.Seek(off, whence)
			want, wantErr := model.Seek(off, whence)
			require.Equal(t, wantErr == nil, err == nil)
			if err == nil {
				require.Equal(t, want, at)
			}
		default:
			p, q := make([]byte, 1+random.IntN(90_000)), make([]byte, 90_000)
			n, err := file.Read(p)
			if errors.Is(err, io.EOF) {
				_, wantErr := model.Read(q)
				require.ErrorIs(t, wantErr, io.EOF)
				continue
			}
			require.NoError(t, err)
			_, err = io.ReadFull(model, q[:n])
			require.NoError(t, err)
			require.True(t, bytes.Equal(q[:n], p[:n]))
		}
	}
}

func TestReadsByManyAtATimeAreIndependent(t *testing.T) {
	f := newFake(t, 3, 4*fakeBlock, Options{})
	file := f.file(t)
	var readers sync.WaitGroup
	for g := range 8 {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 9))
			for range 40 {
				off := random.IntN(len(f.content) - 1)
				p := make([]byte, min(1+random.IntN(100_000), len(f.content)-off))
				n, err := file.ReadAt(p, int64(off))
				if err != nil || n != len(p) || !bytes.Equal(p, f.content[off:off+n]) {
					t.Errorf("%d bytes at %d: %d, %v", len(p), off, n, err)
				}
			}
		})
	}
	readers.Wait()
}

// flipAt damages one byte of a block.
func flipAt(block uint64, at int64) func(uint64, int64, []byte) {
	return func(b uint64, offset int64, data []byte) {
		if i := at - offset; b == block && i >= 0 && i < int64(len(data)) {
			data[i] ^= 4
		}
	}
}

func TestADamagedReplicaIsNeitherSeenNorForgotten(t *testing.T) {
	for _, at := range []int64{0, 511, 512, 70_000, fakeBlock - 1} {
		for damaged := 1; damaged <= 2; damaged++ {
			f := newFake(t, 3, 2*fakeBlock, Options{})
			for _, n := range f.datanodes[:damaged] {
				n.flip = flipAt(1000, at)
			}
			file := f.file(t)
			require.True(t, bytes.Equal(f.content, readInPieces(t, file, 1<<20)), "byte %d of %d replicas", at, damaged)
			report := <-f.reports
			require.Len(t, report.GetLocs(), damaged)
			require.Equal(t, uint64(1000), report.GetB().GetBlockId())
			before := f.datanodes[0].requests.Load()
			p := make([]byte, 1000)
			p = p[:min(1000, fakeBlock-max(0, at-500))]
			n, err := file.ReadAt(p, max(0, at-500))
			require.NoError(t, err)
			require.True(t, bytes.Equal(p[:n], f.content[max(0, at-500):][:n]))
			require.Equal(t, before, f.datanodes[0].requests.Load(), "the damaged replica was asked again")
		}
	}
}

func TestABlockThatIsDamagedEverywhereIsAnErrorAndNoByteOfItsChunkIsReported(t *testing.T) {
	for replicas := 1; replicas <= 3; replicas++ {
		f := newFake(t, replicas, fakeBlock, Options{})
		for _, n := range f.datanodes {
			n.flip = flipAt(1000, 100_000)
		}
		p := make([]byte, fakeBlock)
		n, err := f.file(t).ReadAt(p, 10)
		require.ErrorIs(t, err, ErrChecksum)
		require.Equal(t, 100_000/512*512-10, n)
		require.True(t, bytes.Equal(f.content[10:10+n], p[:n]))
		f.client.Close()
		if replicas == 1 {
			require.Len(t, f.reports, 1, "the only replica")
		} else {
			require.Empty(t, f.reports, "when all are bad it is rather the reader")
		}
	}
}

func TestNodesThatFailAreReplacedByOthers(t *testing.T) {
	for name, fail := range map[string]func(n *fakeNode){
		"not there":       func(n *fakeNode) { n.close() },
		"refuses":         func(n *fakeNode) { n.status = func(int) wire.Status { return wire.Status_ERROR } },
		"closes at once":  func(n *fakeNode) { n.cut = func(int) bool { return true } },
		"closes midway":   func(n *fakeNode) { n.cut = func(sent int) bool { return sent > 100_000 } },
		"has no checksum": func(n *fakeNode) { n.kind = wire.ChecksumType_CHECKSUM_NULL },
		"token refused":   func(n *fakeNode) { n.status = func(int) wire.Status { return wire.Status_ERROR_ACCESS_TOKEN } },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, 3, 2*fakeBlock, Options{})
			fail(f.datanodes[0])
			fail(f.datanodes[1])
			require.True(t, bytes.Equal(f.content, readInPieces(t, f.file(t), 1<<20)))
			require.True(t, bytes.Equal(f.content, readInPieces(t, f.file(t), 1000)))
		})
	}
}

func TestAnExpiredTokenIsReplacedAndTheSameNodeGoesOn(t *testing.T) {
	f := newFake(t, 2, fakeBlock, Options{})
	f.datanodes[0].status = func(request int) wire.Status {
		if request == 1 {
			return wire.Status_ERROR_ACCESS_TOKEN
		}
		return wire.Status_SUCCESS
	}
	require.True(t, bytes.Equal(f.content, readInPieces(t, f.file(t), 1<<20)))
	require.Equal(t, 2, f.calls)
	require.Zero(t, f.datanodes[1].requests.Load())
}

func TestAStreamThatBreaksIsOpenedAgainOnTheSameNode(t *testing.T) {
	f := newFake(t, 2, fakeBlock, Options{})
	f.datanodes[0].cut = func(sent int) bool { return f.datanodes[0].requests.Load() == 1 && sent > 100_000 }
	require.True(t, bytes.Equal(f.content, readInPieces(t, f.file(t), 1<<20)))
	require.EqualValues(t, 2, f.datanodes[0].requests.Load())
	require.Zero(t, f.datanodes[1].requests.Load())
}

func TestACallerWhoRestsIsNoSilenceOfTheNode(t *testing.T) {
	const timeout = 200 * time.Millisecond
	f := newFake(t, 2, fakeBlock, Options{Dialer: datanode.NewDialer(datanode.Options{Timeout: timeout})})
	file := f.file(t)
	p := make([]byte, large+1000) // it ends within a packet
	_, err := io.ReadFull(file, p)
	require.NoError(t, err)
	time.Sleep(timeout + timeout/2) // what it is about
	rest := readInPieces(t, file, 1<<20)
	require.True(t, bytes.Equal(f.content, append(p, rest...)))
	require.EqualValues(t, 1, f.datanodes[0].requests.Load())
	require.Zero(t, f.datanodes[1].requests.Load())
}

func TestAFileWithoutChecksumsIsRefusedAtOnce(t *testing.T) {
	f := newFake(t, 3, fakeBlock, Options{}, func(n *fakeNode) { n.kind = wire.ChecksumType_CHECKSUM_NULL })
	begin := time.Now()
	n, err := f.file(t).ReadAt(make([]byte, 10), 0)
	require.Zero(t, n)
	require.ErrorIs(t, err, ErrLayout)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "no checksums")
	require.Less(t, time.Since(begin), 5*time.Second)
}

func TestStripedAndEncryptedFilesAreRefusedByName(t *testing.T) {
	f := newFake(t, 1, fakeBlock, Options{})
	for text, change := range map[string]func(*wire.LocatedBlocks){
		"erasure-coded":   func(l *wire.LocatedBlocks) { l.EcPolicy = &wire.ErasureCodingPolicy{Id: proto.Uint32(1)} },
		"striped":         func(l *wire.LocatedBlocks) { l.Blocks[0].BlockIndices = []byte{0} },
		"it is encrypted": func(l *wire.LocatedBlocks) { l.FileEncryptionInfo = &wire.FileEncryptionInfo{} },
	} {
		located, err := f.GetBlockLocations(t.Context(), "/file", 0, 1<<40)
		require.NoError(t, err)
		change(located)
		_, err = f.client.Open(t.Context(), "/file", located)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, text)
		_, _, err = f.client.Checksum(t.Context(), located)
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
}

func TestADeadNodeIsRememberedByAllFilesAndTriedLast(t *testing.T) {
	f := newFake(t, 2, fakeBlock, Options{RetryFor: -1})
	dead := f.datanodes[0]
	dead.stall = func(int) <-chan struct{} { return nil }
	dead.close()
	readInPieces(t, f.file(t), 1<<20)
	require.True(t, f.client.dead.has(dead.address()))
	f.nodes = func(int) []*fakeNode { return f.datanodes[:1] }
	_, err := f.file(t).ReadAt(make([]byte, 10), 0)
	require.ErrorIs(t, err, ErrNoReplica, "it is tried if there is no other")
	require.ErrorContains(t, err, dead.address())
}

func TestBlocksThatMoveAreFound(t *testing.T) {
	f := newFake(t, 2, 2*fakeBlock, Options{})
	f.nodes = func(int) []*fakeNode { return f.datanodes[:1] }
	file := f.file(t)
	f.datanodes[0].set(func() { f.datanodes[0].blocks = map[uint64][]byte{} })
	f.mu.Lock()
	f.nodes = func(int) []*fakeNode { return f.datanodes[1:] }
	f.mu.Unlock()
	require.True(t, bytes.Equal(f.content, readInPieces(t, file, 1<<20)))
}

func TestAnotherFileInItsPlaceIsNotTakenForIt(t *testing.T) {
	f := newFake(t, 1, 2*fakeBlock, Options{Prefetch: 1})
	file := f.file(t)
	f.datanodes[0].set(func() { f.datanodes[0].blocks = map[uint64][]byte{} })
	f.mu.Lock()
	f.id = func(block int) uint64 { return uint64(5000 + block) }
	f.mu.Unlock()
	_, err := file.ReadAt(make([]byte, 10), 0)
	require.ErrorIs(t, err, ErrChanged)
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	f := newFake(t, 1, 2*fakeBlock, Options{})
	file := f.file(t)
	random := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		_, err := file.ReadAt(make([]byte, 1000), random.Int64N(fakeBlock))
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, f.datanodes[0].connections.Load())
	require.Eventually(t, func() bool { return f.datanodes[0].requests.Load() == f.datanodes[0].goodEnds.Load() },
		5*time.Second, time.Millisecond, "a read ended without saying so")
}

func TestAConnectionThatTheNodeHasClosedCostsNothingButItself(t *testing.T) {
	f := newFake(t, 2, fakeBlock, Options{})
	file := f.file(t)
	_, err := file.ReadAt(make([]byte, 1000), 0)
	require.NoError(t, err)
	f.datanodes[0].set(func() {
		for c := range f.datanodes[0].conns {
			_ = c.Close()
		}
	})
	p := make([]byte, 1000)
	_, err = file.ReadAt(p, 5000)
	require.NoError(t, err)
	require.True(t, bytes.Equal(f.content[5000:6000], p))
	require.Zero(t, f.datanodes[1].requests.Load())
}

func TestAReadEndsWithItsContextAndWithItsFile(t *testing.T) {
	for name, end := range map[string]func(cancel func(), f *File, c *Client){
		"context": func(cancel func(), _ *File, _ *Client) { cancel() },
		"file":    func(_ func(), f *File, _ *Client) { _ = f.Close() },
		"client":  func(_ func(), _ *File, c *Client) { c.Close() },
	} {
		for _, hedge := range []time.Duration{0, time.Millisecond} {
			t.Run(fmt.Sprint(name, hedge), func(t *testing.T) {
				f := newFake(t, 2, fakeBlock, Options{HedgeAfter: hedge})
				release := make(chan struct{})
				asked := make(chan struct{}, 10)
				for _, n := range f.datanodes {
					n.stall = func(int) <-chan struct{} {
						asked <- struct{}{}
						return release
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				file, err := f.client.Open(ctx, "/file", nil)
				require.NoError(t, err)
				ended := make(chan error, 1)
				go func() {
					_, err := file.ReadAt(make([]byte, 100), 0)
					ended <- err
				}()
				<-asked
				begin := time.Now()
				end(cancel, file, f.client)
				err = <-ended
				require.Less(t, time.Since(begin), 250*time.Millisecond)
				if name == "context" {
					require.ErrorIs(t, err, context.Canceled)
				} else {
					require.ErrorIs(t, err, fs.ErrClosed)
				}
				close(release)
			})
		}
	}
}

func TestWhenNoNodeAnswersTheTimeIsBounded(t *testing.T) {
	f := newFake(t, 2, fakeBlock, Options{RetryFor: 400 * time.Millisecond})
	file := f.file(t)
	for _, n := range f.datanodes {
		n.close()
	}
	begin := time.Now()
	n, err := file.ReadAt(make([]byte, 100), 0)
	require.Zero(t, n)
	require.ErrorIs(t, err, ErrNoReplica)
	require.Less(t, time.Since(begin), 2*time.Second)
	require.Greater(t, f.calls, 1, "the NameNode was not asked again")
}

func TestASlowNodeIsHedged(t *testing.T) {
	f := newFake(t, 2, 2*fakeBlock, Options{HedgeAfter: 5 * time.Millisecond})
	release := make(chan struct{})
	defer close(release)
	f.datanodes[0].stall = func(int) <-chan struct{} { return release }
	file := f.file(t)
	p := make([]byte, fakeBlock)
	n, err := file.ReadAt(p, 100_000)
	require.NoError(t, err)
	require.True(t, bytes.Equal(f.content[100_000:100_000+n], p))

	f.datanodes[1].set(func() { f.datanodes[1].flip = flipAt(1000, 1000) })
	f.datanodes[0].set(func() { f.datanodes[0].stall = nil })
	n, err = file.ReadAt(p, 0)
	require.NoError(t, err)
	require.True(t, bytes.Equal(f.content[:n], p))
}

func TestAFileThatIsBeingWrittenIsReadUpToItsVisibleLength(t *testing.T) {
	f := newFake(t, 2, fakeBlock+5000, Options{VisibleLength: func(_ context.Context, _ *wire.DatanodeInfo, b *wire.ExtendedBlock) (int64, error) {
		if b.GetBlockId() != 1001 {
			return 0, errors.New("another block")
		}
		return 4321, nil
	}})
	f.open = true
	file, err := f.client.Open(t.Context(), "/file", nil)
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // always nil
	require.EqualValues(t, fakeBlock+4321, file.Size())
	f.mu.Lock()
	f.open = false // its writer closes it, longer
	f.mu.Unlock()
	require.True(t, bytes.Equal(f.content[:fakeBlock+4321], readInPieces(t, file, 1<<20)))
}

func TestOptionsThatAreWrongAreAllNamed(t *testing.T) {
	_, err := New(Options{Skip: -1, DeadFor: -1})
	require.ErrorIs(t, err, fs.ErrInvalid)
	for _, text := range []string{"NameNode", "Skip", "DeadFor"} {
		require.ErrorContains(t, err, text)
	}
	_, err = New(Options{NameNode: &fakeNames{}, Dialer: datanode.NewDialer(datanode.Options{})})
	require.NoError(t, err)
}
