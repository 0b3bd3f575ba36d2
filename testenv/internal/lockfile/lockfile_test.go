package lockfile

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestModesExcludeEachOther(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second Mode
		excluded      bool
	}{
		{"many may share", Shared, Shared, false},
		{"a sharer keeps out an owner", Shared, Exclusive, true},
		{"an owner keeps out a sharer", Exclusive, Shared, true},
		{"there is one owner", Exclusive, Exclusive, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "folder", "lock")
			first, err := Try(name, tt.first)
			require.NoError(t, err)
			second, err := Try(name, tt.second)
			if tt.excluded {
				require.ErrorIs(t, err, ErrHeld)
			} else {
				require.NoError(t, err)
				require.NoError(t, second.Unlock())
			}
			held, err := Held(name)
			require.NoError(t, err)
			require.Equal(t, tt.first == Exclusive, held)

			require.NoError(t, first.Unlock())
			second, err = Try(name, tt.second)
			require.NoError(t, err)
			require.NoError(t, second.Unlock())
		})
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	owner, err := Try(name, Exclusive)
	require.NoError(t, err)
	defer func() { require.NoError(t, owner.Unlock()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = Wait(ctx, name, Shared)
	require.ErrorIs(t, err, ErrHeld)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAFolderThatCannotBeMadeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, name := range []string{filepath.Join(file, "lock"), filepath.Join(file, "folder", "lock")} {
		_, err := Try(name, Exclusive)
		require.ErrorIs(t, err, syscall.ENOTDIR)
	}
}

func TestAFileThatIsNotThereIsNotHeld(t *testing.T) {
	held, err := Held(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
	require.False(t, held)
}

// Owners remove the folder with the file before they unlock, as the end of a cluster does.
func TestThereIsOneOwnerAlthoughOwnersRemoveTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "folder", "lock")
	var owners, rounds atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 25 {
				l, err := Wait(t.Context(), name, Exclusive)
				if err != nil {
					t.Error(err)
					return
				}
				if n := owners.Add(1); n != 1 {
					t.Errorf("%d owners at once", n)
				}
				rounds.Add(1)
				owners.Add(-1)
				if err := os.Remove(name); err != nil {
					t.Error(err)
				}
				_ = os.Remove(filepath.Dir(name)) // fails if the next one has made its file already
				if err := l.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.EqualValues(t, 200, rounds.Load())
}
