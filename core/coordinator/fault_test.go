package coordinator

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// errFault is passing, as most failures of a storage are.
var errFault = fmt.Errorf("%w: %w", faultfs.ErrInjected, core.ErrUnavailable)

// mustSurface reports whether the failure of a call has to be told. If only the reply was lost, the truth can be found out
// for some calls; and a call that fails by itself has no reply that could be lost.
func mustSurface(c faultfs.Call, after bool) bool {
	switch c.Op {
	case faultfs.OpCreate, faultfs.OpWrite, faultfs.OpSync, faultfs.OpClose, faultfs.OpMkdirAll:
		return true
	}
	// The mark of a savepoint that has its outcome does no harm; that it stays is only logged.
	return !after && !strings.HasSuffix(c.Name, ".begun")
}

// Each single call to the storage fails once, before or after it has had its effect; or everything fails from then on.
func TestWhateverCallFailsNothingReportedIsLost(t *testing.T) {
	t.Run("separate files", func(t *testing.T) { faultSweep(t, false, 1) })
	t.Run("packed", func(t *testing.T) { faultSweep(t, true, 7) })
}

func faultSweep(t *testing.T, packed bool, step int) {
	t.Helper()
	count := lives(t, packed, "none", nil)
	require.Greater(t, count, 200)
	for _, sweep := range []struct {
		name   string
		step   int // neighbouring calls of a longer failure differ little
		inject func(i int) faultfs.Injector
	}{
		{"once", 1, func(i int) faultfs.Injector { return faultfs.Nth(i, faultfs.Fault{Err: errFault}) }},
		{"reply lost", 1, func(i int) faultfs.Injector { return faultfs.Nth(i, faultfs.Fault{Err: errFault, After: true}) }},
		{"from then on", 3, func(i int) faultfs.Injector { return faultfs.From(i, faultfs.Fault{Err: errFault}) }},
		{"outage of five", 3, func(i int) faultfs.Injector { return outage(i, 5) }},
	} {
		t.Run(sweep.name, func(t *testing.T) {
			t.Parallel()
			for i := 0; i < count; i += sweep.step * step * stride {
				synctest.Test(t, func(t *testing.T) { lives(t, packed, fmt.Sprintf("call %d", i), sweep.inject(i)) })
			}
		})
	}
}

// outage lets the reply of call i be lost and the next n calls fail.
func outage(i, n int) faultfs.Injector {
	return func(c faultfs.Call) faultfs.Fault {
		switch {
		case c.Index == i:
			return faultfs.Fault{Err: errFault, After: true}
		case c.Index > i && c.Index <= i+n:
			return faultfs.Fault{Err: errFault}
		}
		return faultfs.Fault{}
	}
}

// lives lets a job live with faults and checks what is left. It returns the number of calls.
func lives(t *testing.T, packed bool, name string, inject faultfs.Injector) int {
	t.Helper()
	mem := memfs.New(memfs.Options{})
	placeForeignFiles(t, mem)
	var mu sync.Mutex // files are deleted in parallel
	var hit *faultfs.Call
	after := false
	fsys := faultfs.Wrap(mem, func(c faultfs.Call) faultfs.Fault {
		if inject == nil {
			return faultfs.Fault{}
		}
		fault := inject(c)
		mu.Lock()
		defer mu.Unlock()
		if !fault.IsZero() && hit == nil {
			hit, after = &c, fault.After
		}
		return fault
	})
	l := newLedger()
	l.packed = packed
	l.live(t, fsys)
	fsys.SetInjector(nil)
	require.Empty(t, fsys.OpenFiles(), name)
	what := name
	if hit != nil {
		what = fmt.Sprintf("%s: %s %s %s", name, hit.Op, hit.Name, hit.NewName)
		if mustSurface(*hit, after) {
			require.ErrorIs(t, l.surfaced, faultfs.ErrInjected, "%s did not surface", what)
		}
	}
	require.NoError(t, l.verify(t, mem), what)
	return fsys.Count()
}
