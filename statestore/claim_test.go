package statestore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

func TestAnEpochWhoseNameAFileHasIsPassedOver(t *testing.T) {
	fsys := newMem()
	write(t, fsys, home+"/_epoch-1", nil)
	write(t, fsys, home+"/_epoch-2", nil)
	s := openStore(t, fsys, statestore.Options{})
	commit(t, s, 0, state{})
	require.True(t, exists(t, fsys, "_epoch-3/owner"))
}

func TestWhatACrashedClaimLeftIsNobodysClaim(t *testing.T) {
	fsys := newMem()
	s := openStore(t, fsys, statestore.Options{})
	require.NoError(t, fsys.MkdirAll(t.Context(), home+"/_epoch-1"))
	commit(t, s, 0, state{"a": "1"})
	require.False(t, exists(t, fsys, "_epoch-1"))
	require.NoError(t, fsys.MkdirAll(t.Context(), home+"/_epoch-7/"+uuid))
	commit(t, s, 1, state{"a": "2"}) // it was not there when the store claimed
	s = openStore(t, fsys, statestore.Options{})
	commit(t, s, 2, state{"a": "3"})
	require.True(t, exists(t, fsys, "_epoch-8/owner"))
	require.False(t, exists(t, fsys, "_epoch-7"))
}

// Whatever call of a claim fails, the same store claims when it is asked again.
func TestAClaimThatFailedIsMadeAgain(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 0; ; at++ {
			inner := newMem()
			history(t, openStore(t, inner, statestore.Options{}), 0, 2, state{})
			fsys := faultfs.Wrap(inner, nil)
			s := openStore(t, fsys, statestore.Options{})
			fsys.SetInjector(faultfs.Nth(fsys.Count()+at, faultfs.Fault{Err: faultfs.ErrInjected, After: after}))
			last := fsys.Count() + at
			err := s.Claim(t.Context())
			if fsys.Count() <= last {
				require.NoError(t, err)
				require.Greater(t, at, 8)
				break
			}
			if err != nil {
				require.ErrorIs(t, err, faultfs.ErrInjected)
				require.NoError(t, s.Claim(t.Context()), "call %d, after=%v", at, after)
			}
			commit(t, s, 2, state{})
			require.NoError(t, s.Close())
		}
	}
}

// A claimer that is held up at any call, while another claims and commits, either gets nothing or was there later.
func TestAClaimerThatIsHeldUpHarmsNobody(t *testing.T) {
	for at := 0; ; at++ {
		inner := newMem()
		history(t, openStore(t, inner, statestore.Options{}), 0, 2, state{})
		fsys := faultfs.Wrap(inner, nil)
		slow, quick := openStore(t, fsys, statestore.Options{}), openStore(t, inner, statestore.Options{})
		tx := begin(t, slow, 2)
		put(t, tx, "who", "slow")
		held := false
		start := fsys.Count()
		var quickErr error
		fsys.SetInjector(func(c faultfs.Call) faultfs.Fault {
			if c.Index == start+at && !held {
				held = true
				quickErr = tryCommit(t, quick, 2, state{"who": "quick"})
			}
			return faultfs.Fault{}
		})
		_, slowErr := tx.Commit(t.Context())
		if !held {
			require.NoError(t, slowErr)
			require.Greater(t, at, 10)
			return
		}
		require.True(t, (slowErr == nil) != (quickErr == nil) || slowErr != nil && quickErr != nil, "call %d: both succeed", at)
		got, err := tryLoad(t, openStore(t, inner, statestore.Options{}), 3)
		switch {
		case quickErr == nil:
			require.ErrorIs(t, slowErr, core.ErrFenced, "call %d", at)
			require.NoError(t, err)
			require.Equal(t, state{"who": "quick"}, got)
			commit(t, quick, 3, state{})
		case slowErr == nil:
			require.NoError(t, err)
			require.Equal(t, "slow", got["who"])
			commit(t, slow, 3, state{})
		}
	}
}

func TestManyOwnersFollowEachOther(t *testing.T) {
	fsys := newMem()
	var last *statestore.Store
	for v := range int64(30) {
		s := openStore(t, fsys, statestore.Options{OwnerName: fmt.Sprint("owner ", v)})
		commit(t, s, v, state{"v": fmt.Sprint(v)})
		if last != nil {
			require.ErrorIs(t, last.Claim(context.Background()), core.ErrFenced)
		}
		last = s
	}
	require.Len(t, names(t, fsys, home), 31)
}
