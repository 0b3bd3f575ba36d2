package memfs_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// overlap makes random calls of which others begin when one has been applied and is not yet durable, as those of several
// goroutines do, but in an order that a seed repeats.
type overlap struct {
	script
	random *rand.Rand
	depth  int
	serial int
	trail  []string
}

const (
	permanent  = 6 // files that are synced, never removed and never replaced
	maxOverlap = 4
)

func newOverlap(t testing.TB, random *rand.Rand) *overlap {
	o := &overlap{script: newScript(t), random: random}
	o.mkdir("/a/b")
	o.mkdir("/b/c")
	for i := range permanent {
		o.write(fmt.Sprintf("/file-%d", i), fmt.Sprintf("permanent %d", i), core.Synced)
	}
	o.OnMutation(o.step)
	return o
}

func (o *overlap) step(m memfs.Mutation) {
	o.trail = append(o.trail, m.String())
	for _, percent := range []int{0, 30, 70} {
		o.requireOnce(percent)
	}
	if m.Step == memfs.Applied && o.depth < maxOverlap {
		o.depth++
		for range o.random.IntN(3) {
			o.act()
		}
		o.depth--
	}
}

// requireOnce requires that a crash leaves every permanent file, whole, under exactly one name.
func (o *overlap) requireOnce(percent int) {
	crashed := o.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: o.random})
	found := map[string]int{}
	for _, line := range contents(o.t, crashed) {
		if _, content, isFile := strings.Cut(line, "="); isFile {
			found[content]++
		}
	}
	for i := range permanent {
		require.Equal(o.t, 1, found[fmt.Sprintf("permanent %d", i)], "file %d at %d %% after %q", i, percent, o.trail)
	}
}

// pick returns a name that exists, or a new one in a directory that exists.
func (o *overlap) pick(fresh bool) string {
	var names []string
	for _, line := range o.Tree() {
		name, _, isFile := strings.Cut(line, " ")
		if !fresh || !isFile {
			names = append(names, strings.TrimSuffix(name, "/"))
		}
	}
	name := "/"
	if i := o.random.IntN(len(names) + 1); i < len(names) {
		name = names[i]
	}
	if fresh || name == "/" {
		name = path.Join(name, []string{"a", "b", "c", "file-0", "file-1"}[o.random.IntN(5)])
	}
	return name
}

func (o *overlap) act() {
	switch o.random.IntN(8) {
	case 0, 1:
		o.serial++
		name := fmt.Sprintf("%s-noise-%d", o.pick(true), o.serial)
		durability := []core.Durability{core.Unsynced, core.Synced}[o.random.IntN(2)]
		w, err := o.Create(o.ctx, name, core.CreateOptions{Durability: durability})
		if err == nil && w.Close() == nil && durability == core.Synced {
			o.requireDurable(name)
		}
	case 2, 3:
		dir := o.pick(true)
		if o.MkdirAll(o.ctx, dir) == nil {
			o.requireDurable(dir)
		}
	default:
		oldname, newname := o.pick(false), o.pick(true)
		if o.Rename(o.ctx, oldname, newname, core.RenameNoReplace) == nil {
			o.requireDurable(newname)
		}
	}
}

// requireDurable requires of an acknowledged name that a crash leaves it, if no overlapping call has changed it again.
func (o *overlap) requireDurable(name string) {
	if _, err := o.Stat(o.ctx, name); err == nil {
		_, err = o.CrashClone(memfs.CrashConfig{}).Stat(o.ctx, name)
		require.NoError(o.t, err, "acknowledged and not durable after %q", o.trail)
	}
}

func TestCallsThatOverlapLoseNothingInACrash(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for run := range uint64(25) {
		o := newOverlap(t, rand.New(rand.NewPCG(seed, run)))
		for range 6 {
			o.act()
		}
		present, crashed := directories(o.Tree()), directories(o.CrashClone(memfs.CrashConfig{}).Tree())
		require.Equal(t, present, crashed, "all calls have returned: %q", o.trail)
	}
}

func directories(tree []string) []string {
	var dirs []string
	for _, line := range tree {
		if strings.HasSuffix(line, "/") {
			dirs = append(dirs, line)
		}
	}
	return dirs
}
