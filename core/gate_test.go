package core_test

import (
	"context"
	"iter"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// gate holds chosen calls up before they have an effect, so that others can act in between.
type gate struct {
	fsys *faultfs.FS
}

func newGate(inner core.FileSystem) *gate { return &gate{fsys: faultfs.Wrap(inner, nil)} }

// stopPoint is one call that is held up.
type stopPoint struct {
	reached chan struct{}
	open    chan struct{}
}

// stopAt holds the first call up that pred accepts from now on; earlier stop points are forgotten.
func (g *gate) stopAt(pred func(faultfs.Call) bool) *stopPoint {
	p := &stopPoint{reached: make(chan struct{}), open: make(chan struct{})}
	var once sync.Once
	g.fsys.SetInjector(func(c faultfs.Call) (fault faultfs.Fault) {
		if pred(c) {
			once.Do(func() {
				fault.Block = p.open
				close(p.reached)
			})
		}
		return fault
	})
	return p
}

func (p *stopPoint) wait()    { <-p.reached }
func (p *stopPoint) release() { close(p.open) }

// crashClone is what a power cut left, and where.
type crashClone struct {
	mem *memfs.FS
	at  string
}

// collectClones clones the file system after every step from now on, with nothing, a part and all of what is not durable.
func collectClones(mem *memfs.FS, clones *[]crashClone) (stop func()) {
	var mu sync.Mutex
	mem.OnMutation(func(m memfs.Mutation) {
		mu.Lock()
		defer mu.Unlock()
		for _, percent := range []int{0, 50, 100} {
			*clones = append(*clones, crashClone{mem.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent}), m.String()})
		}
	})
	return func() { mem.OnMutation(nil) }
}

// markDisposal brings the disposal of a checkpoint to the point between its two renames, as an owner leaves it that dies
// there. It returns where the metadata is.
func markDisposal(t testing.TB, r *jobRig, owner *core.Owner, id int64) string {
	t.Helper()
	var claim string
	prefix := r.dir() + "/.epoch-"
	for name := range snapshot(t, r.mem, r.dir()) {
		if rest, ok := strings.CutPrefix(name, prefix); ok && strings.Count(rest, "/") == 2 && strings.HasSuffix(rest, "/") {
			claim = strings.TrimSuffix(name, "/")
		}
	}
	require.NotEmpty(t, claim)
	mark := claim + "/" + core.CheckpointDirName(id) + ".disposed"
	require.NoError(t, owner.Check(context.Background()))
	require.NoError(t, r.mem.Rename(context.Background(), r.chk(id)+"/"+core.MetadataName, mark, core.RenameNoReplace))
	return mark
}

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
