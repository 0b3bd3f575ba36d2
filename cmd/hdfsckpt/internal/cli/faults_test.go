package cli

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

// inject puts faults into the file system of the command from now on and returns it, for its calls.
func (r *rig) inject(injector faultfs.Injector) *faultfs.FS {
	f := faultfs.Wrap(r.fsys, injector)
	r.fsys = f
	return f
}

// denies is the injector that denies every call of op on names that end like this.
func denies(op faultfs.Op, suffix string) faultfs.Injector {
	return fails(op, suffix, fs.ErrPermission)
}

func fails(op faultfs.Op, suffix string, err error) faultfs.Injector {
	return faultfs.Match(func(c faultfs.Call) bool { return c.Op == op && strings.HasSuffix(c.Name, suffix) }, faultfs.Fault{Err: err})
}

// before runs act once, just before the first call of op on a name that ends like this.
func before(op faultfs.Op, suffix string, act func()) faultfs.Injector {
	var once sync.Once
	return func(c faultfs.Call) faultfs.Fault {
		if c.Op == op && strings.HasSuffix(c.Name, suffix) {
			once.Do(act)
		}
		return faultfs.Fault{}
	}
}

// reading are the calls that change nothing.
var reading = []faultfs.Op{faultfs.OpOpen, faultfs.OpStat, faultfs.OpList, faultfs.OpRead, faultfs.OpReadAt}

// onlyReads requires that no call changed anything, and that no call touched a path element that starts like one of foreign.
func onlyReads(r *rig, f *faultfs.FS, foreign ...string) {
	r.t.Helper()
	require.NotEmpty(r.t, f.Calls())
	for _, call := range f.Calls() {
		require.True(r.t, slices.Contains(reading, call.Op), "%v %s", call.Op, call.Name)
		for _, name := range foreign {
			require.NotEqual(r.t, name, path.Base(call.Name))
		}
	}
}

func indexOf(t *testing.T, data []byte, text string) int {
	t.Helper()
	at := bytes.Index(data, []byte(text))
	require.NotEqual(t, -1, at)
	return at
}
