package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// The stages of a file at which something happens to it.
const (
	atSetUp    = "set-up"       // the NameNode has named the nodes of the first block
	inBlock    = "in a block"   // half of the second block is acknowledged
	atEnd      = "end of block" // all of the second block but its last byte is acknowledged
	atBoundary = "boundary"     // the NameNode has named the nodes of the second block
	atClose    = "close"        // everything is acknowledged, the last block is not finished
	atComplete = "complete"     // all blocks are finished
)

var stages = []string{atSetUp, inBlock, atEnd, atBoundary, atClose, atComplete}

// crowd is many files, each of which goes on to its stage and waits there.
type crowd struct {
	c       *chaos
	files   []*staged
	gone    chan struct{}
	letGo   func()
	goingOn time.Time
	running sync.WaitGroup
}

// staged is one of them. It is the NameNode of its writer, to put the victims where they are wanted, and to wait.
type staged struct {
	NameNode
	crowd    *crowd
	name     string
	stage    string
	position int
	victims  []string
	data     []byte
	w        *Writer

	added   int
	updates atomic.Int32 // pipelines that were recovered
	arrived chan struct{}
	arrive  func()

	synced int // bytes that Sync was nil for
	err    error
	took   time.Duration
}

// gather begins to write a file for each stage and position of the victims.
func (c *chaos) gather(ctx context.Context, victims []string) *crowd {
	m := &crowd{c: c, gone: make(chan struct{})}
	m.letGo = sync.OnceFunc(func() {
		m.goingOn = time.Now()
		close(m.gone)
	})
	c.t.Cleanup(m.running.Wait)
	c.t.Cleanup(m.letGo)
	for _, stage := range stages {
		for position := range 3 {
			f := &staged{
				NameNode: c.nn, crowd: m, stage: stage, position: position, victims: victims, arrived: make(chan struct{}),
				name: fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(path.Base(c.t.Name()), ":", ""), strings.ReplaceAll(stage, " ", "-"), position),
				data: content(3*block + 1 + c.random.IntN(block)),
			}
			f.arrive = sync.OnceFunc(func() { close(f.arrived) })
			f.w = c.createIn(ctx, f.name, 3, Options{NameNode: f, MinReplicas: 2})
			m.files = append(m.files, f)
			m.running.Go(func() {
				f.synced, f.err = f.write()
				f.took = time.Since(m.goingOn)
				f.arrive()
			})
		}
	}
	return m
}

// await waits until all files are where they should be.
func (m *crowd) await() {
	m.c.t.Helper()
	for _, f := range m.files {
		select {
		case <-f.arrived:
			require.NoError(m.c.t, f.err, f.name)
		case <-time.After(time.Minute):
			require.Fail(m.c.t, "it takes too long", f.name)
		}
	}
}

// release lets all files go on.
func (m *crowd) release() { m.letGo() }

// end waits until all files have ended.
func (m *crowd) end() { m.running.Wait() }

// times says how long the files of each stage have taken since they were let go, at least and at most, and how many pipelines of one of
// them were recovered at most.
func (m *crowd) times() string {
	var parts []string
	for _, stage := range stages {
		var took []time.Duration
		recovered := int32(0)
		for _, f := range m.files {
			if f.stage == stage {
				took = append(took, f.took)
				recovered = max(recovered, f.updates.Load())
			}
		}
		parts = append(parts, fmt.Sprintf("%s %.2f–%.2f s (%d recovered)", stage, slices.Min(took).Seconds(), slices.Max(took).Seconds(), recovered))
	}
	return strings.Join(parts, ", ")
}

// write writes the file and returns up to where it was synced.
func (f *staged) write() (synced int, err error) {
	half := map[string]int{atSetUp: 0, inBlock: block + block/2, atEnd: 2*block - 1, atBoundary: 0, atClose: len(f.data), atComplete: 0}[f.stage]
	if half > 0 {
		if _, err := f.w.Write(f.data[:half]); err != nil {
			return 0, err
		}
		if err := f.w.Sync(half%2 == 0); err != nil {
			return 0, err
		}
		synced = half
		f.wait()
	}
	if _, err := f.w.Write(f.data[half:]); err != nil {
		return synced, err
	}
	if f.stage != atClose && f.stage != atComplete {
		if err := f.w.Sync(false); err != nil {
			return synced, err
		}
		synced = len(f.data)
	}
	return synced, f.w.Close()
}

func (f *staged) wait() {
	f.arrive()
	select {
	case <-f.crowd.gone:
	case <-f.w.ctx.Done():
	}
}

// AddBlock asks until the victims are among the nodes, as long as nothing has happened to them, and puts them where they are wanted.
func (f *staged) AddBlock(ctx context.Context, file namenode.File, previous *wire.ExtendedBlock, p namenode.Placement) (*wire.LocatedBlock, error) {
	select {
	case <-f.crowd.gone:
		return f.NameNode.AddBlock(ctx, file, previous, p)
	default:
	}
	for range 20 {
		located, err := f.NameNode.AddBlock(ctx, file, previous, p)
		if err != nil {
			return nil, err
		}
		if f.arrange(located) {
			if f.added++; f.stage == atSetUp && f.added == 1 || f.stage == atBoundary && f.added == 2 {
				f.wait()
			}
			return located, nil
		}
		if err := f.NameNode.AbandonBlock(ctx, file, located.GetB()); err != nil {
			return nil, err
		}
		p.Exclude = nil
		for _, node := range located.GetLocs() {
			if !slices.Contains(f.victims, f.crowd.c.cluster.DataNodeAt(node.GetId().GetXferPort())) {
				p.Exclude = []*wire.DatanodeInfo{node}
			}
		}
	}
	return nil, errors.New("the NameNode does not name the nodes that are wanted")
}

// Complete waits if that is the stage.
func (f *staged) Complete(ctx context.Context, file namenode.File, last *wire.ExtendedBlock) (bool, error) {
	if f.stage == atComplete {
		f.wait()
	}
	return f.NameNode.Complete(ctx, file, last)
}

// UpdatePipeline counts.
func (f *staged) UpdatePipeline(ctx context.Context, before, after *wire.ExtendedBlock, nodes []*wire.DatanodeID, storageIDs []string) error {
	f.updates.Add(1)
	return f.NameNode.UpdatePipeline(ctx, before, after, nodes, storageIDs)
}

// arrange puts the victims at their positions of the pipeline.
func (f *staged) arrange(b *wire.LocatedBlock) bool {
	if len(b.GetLocs()) != 3 {
		return false
	}
	order := []int{-1, -1, -1}
	var others []int
	for i, node := range b.GetLocs() {
		if victim := slices.Index(f.victims, f.crowd.c.cluster.DataNodeAt(node.GetId().GetXferPort())); victim >= 0 {
			order[(f.position+victim)%3] = i
		} else {
			others = append(others, i)
		}
	}
	if len(others) != 3-len(f.victims) {
		return false
	}
	for i := range order {
		if order[i] < 0 {
			order[i], others = others[0], others[1:]
		}
	}
	b.Locs, b.StorageTypes, b.StorageIds = pick(b.GetLocs(), order), pick(b.GetStorageTypes(), order), pick(b.GetStorageIds(), order)
	return true
}

func pick[T any](all []T, order []int) []T {
	var picked []T
	for _, i := range order {
		if len(all) == len(order) {
			picked = append(picked, all[i])
		}
	}
	return picked
}

// onlyOn is a NameNode that puts blocks on one DataNode.
type onlyOn struct {
	NameNode
	c    *chaos
	name string
}

func (o onlyOn) AddBlock(ctx context.Context, file namenode.File, previous *wire.ExtendedBlock, p namenode.Placement) (*wire.LocatedBlock, error) {
	for {
		located, err := o.NameNode.AddBlock(ctx, file, previous, p)
		if err != nil || o.c.cluster.DataNodeAt(located.GetLocs()[0].GetId().GetXferPort()) == o.name {
			return located, err
		}
		if err := o.NameNode.AbandonBlock(ctx, file, located.GetB()); err != nil {
			return nil, err
		}
		p.Exclude = append(p.Exclude, located.GetLocs()[0])
	}
}

// waitReady waits until the cluster works, and each of its DataNodes takes blocks: the NameNode also counts those that have just died.
func (c *chaos) waitReady() {
	c.t.Helper()
	require.NoError(c.t, c.cluster.WaitReady(c.t.Context()))
	processes, err := c.cluster.Processes(c.t.Context())
	require.NoError(c.t, err)
	for _, p := range processes {
		if !strings.HasPrefix(p.Name, "dn") {
			continue
		}
		var err error
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if err = c.probe(p.Name); err == nil {
				break
			}
		}
		require.NoError(c.t, err, p.Name)
	}
}

// probe writes a byte to a DataNode.
func (c *chaos) probe(dataNode string) error {
	c.probes++
	w := c.create(fmt.Sprint("probe-", c.round, "-", c.probes, path.Base(c.t.Name())[2:]), 1, Options{
		NameNode: onlyOn{c.nn, c, dataNode}, BlockRetries: -1,
	})
	w.placeFor = 0
	defer w.Abort()
	if _, err := w.Write([]byte("x")); err != nil {
		return err
	}
	return w.Close()
}
