package memfs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// model knows which files were acknowledged as durable, by their content, and where they may be found.
type model struct {
	script
	random *rand.Rand
	// files are the acknowledged files: content by name.
	files map[string]string
	// oldname and newname are set while a rename is under way.
	oldname, newname string
	// doomed is set while a file is replaced: it may be there or not.
	doomed string
	serial int
}

// moved is where the rename that is under way takes a name.
func (m *model) moved(name string) string {
	if m.oldname != "" && core.Within(m.oldname, name) {
		return m.newname + name[len(m.oldname):]
	}
	return name
}

// check requires of every possible crash that each acknowledged file is there once, whole, under a name it may have.
func (m *model) check(step memfs.Mutation) {
	for _, percent := range []int{0, 20, 80, 100} {
		crashed := m.CrashClone(memfs.CrashConfig{UnsyncedPercent: percent, Rand: m.random})
		found := map[string]string{}
		for _, line := range contents(m.t, crashed) {
			name, content, isFile := strings.Cut(line, "=")
			if !isFile || !strings.HasSuffix(content, ".") {
				continue // not whole, so not acknowledged
			}
			require.NotContains(m.t, found, content, "%s: one file under two names at %d %%", step, percent)
			found[content] = name
		}
		for name, content := range m.files {
			if content == m.doomed && found[content] == "" {
				continue
			}
			require.Contains(m.t, []string{name, m.moved(name)}, found[content],
				"%s: the file %s %q is lost at %d %%", step, name, content, percent)
		}
		again := crashed.CrashClone(memfs.CrashConfig{})
		require.Equal(m.t, crashed.Tree(), again.Tree(), "what a crash has left is durable")
	}
}

// act makes one random call and tells the model what was acknowledged.
func (m *model) act() {
	names := []string{"/a", "/b", "/c", "/a/a", "/a/b", "/b/a", "/b/b", "/c/c", "/a/a/a", "/b/b/b"}
	pick := func() string { return names[m.random.IntN(len(names))] }
	name := pick()
	switch m.random.IntN(10) {
	case 0, 1, 2:
		m.serial++
		content := fmt.Sprintf("file %d.", m.serial)
		durability := []core.Durability{core.Unsynced, core.Synced}[m.random.IntN(2)]
		w, err := m.Create(m.ctx, name, core.CreateOptions{Durability: durability})
		if err != nil {
			return
		}
		for _, piece := range []string{content[:3], content[3:]} {
			_, err = w.Write([]byte(piece))
			require.NoError(m.t, err)
		}
		if m.random.IntN(4) == 0 {
			require.NoError(m.t, w.Abort())
			return
		}
		require.NoError(m.t, w.Close())
		if durability == core.Synced {
			m.files[name] = content
		}
	case 3, 4:
		_ = m.MkdirAll(m.ctx, name) // a file may be in the way
	case 5, 6, 7, 8:
		m.renameFile(name, pick(), core.RenameMode(m.random.IntN(2)))
	case 9:
		for file := range m.files {
			if core.Within(name, file) {
				delete(m.files, file)
			}
		}
		_ = m.RemoveAll(m.ctx, name) // a file may be in the way
	}
}

func (m *model) renameFile(oldname, newname string, mode core.RenameMode) {
	info, err := m.Stat(m.ctx, oldname)
	if err != nil || oldname == newname {
		return
	}
	m.oldname, m.newname = oldname, newname
	if old, ok := m.files[newname]; ok && mode == core.RenameReplace && !info.IsDir() {
		m.doomed = old
	}
	err = m.Rename(m.ctx, oldname, newname, mode)
	if err == nil {
		delete(m.files, newname)
		for file, content := range m.files {
			if core.Within(oldname, file) {
				delete(m.files, file)
				m.files[m.moved(file)] = content
			}
		}
	}
	m.oldname, m.newname, m.doomed = "", "", ""
}

func TestNoCrashLosesOrDoublesAnAcknowledgedFile(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for run := range uint64(15) {
		m := &model{script: newScript(t), random: rand.New(rand.NewPCG(seed, run)), files: map[string]string{}}
		m.OnMutation(m.check)
		for range 60 {
			m.act()
		}
	}
}

// TestRenamesThatOverlapStayAtomic makes several renames pend at once: each begins when the one before it has been applied
// and is not yet durable.
func TestRenamesThatOverlapStayAtomic(t *testing.T) {
	for name, renames := range map[string][][2]string{
		"a chain":                     {{"/x/file", "/y/file"}, {"/y/file", "/z/file"}, {"/z/file", "/x/file"}},
		"directories into each other": {{"/x", "/y/x"}, {"/y/x", "/x"}, {"/y", "/x/y"}},
		"a file out of a moved tree":  {{"/x", "/y/x"}, {"/y/x/file", "/file"}, {"/y", "/z/y"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			for _, dir := range []string{"/x", "/y", "/z"} {
				s.mkdir(dir)
				s.write(dir+"/file"+dir[1:], "in "+dir, core.Synced)
			}
			s.write("/x/file", "the file", core.Synced)
			begun, checked := 0, 0
			s.OnMutation(func(m memfs.Mutation) {
				if m.Step == memfs.Applied && begun < len(renames) {
					begun++
					if begun < len(renames) {
						s.rename(renames[begun][0], renames[begun][1], core.RenameNoReplace)
					}
				}
				for seed := range uint64(100) {
					crashed := s.CrashClone(memfs.CrashConfig{UnsyncedPercent: 50, Rand: rand.New(rand.NewPCG(seed, 0))})
					var found []string
					for _, line := range contents(t, crashed) {
						if _, content, isFile := strings.Cut(line, "="); isFile {
							found = append(found, content)
						}
					}
					require.ElementsMatch(t, []string{"in /x", "in /y", "in /z", "the file"}, found, "%s, seed %d", m, seed)
					checked++
				}
			})
			s.rename(renames[0][0], renames[0][1], core.RenameNoReplace)
			require.Equal(t, 2*len(renames)*100, checked)
			require.Equal(t, s.Tree(), s.CrashClone(memfs.CrashConfig{}).Tree())
		})
	}
}

// TestConcurrentUseAndClones is for the race detector, and for the invariants of a tree.
func TestConcurrentUseAndClones(t *testing.T) {
	f := memfs.New(memfs.Options{})
	ctx := t.Context()
	var group sync.WaitGroup
	for worker := range uint64(8) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(worker, 0))
			for i := range 150 {
				if err := stir(ctx, f, random, i); err != nil {
					t.Errorf("worker %d: %v", worker, err)
					return
				}
			}
		})
	}
	group.Wait()
	require.Empty(t, f.OpenFiles())
	require.Equal(t, f.Tree(), f.CrashClone(memfs.CrashConfig{UnsyncedPercent: 100}).Tree())
}

// stir makes a call that others may defeat, and reports what nobody may.
func stir(ctx context.Context, f *memfs.FS, random *rand.Rand, i int) error {
	name := func() string { return path.Join("/", fmt.Sprint(random.IntN(3)), fmt.Sprint(random.IntN(3))) }
	var err error
	switch i % 6 {
	case 0, 1:
		var w core.Writer
		if err = f.MkdirAll(ctx, path.Dir(name())); err == nil {
			if w, err = f.Create(ctx, name(), core.CreateOptions{}); err == nil {
				_, err = w.Write([]byte("content"))
				err = errors.Join(err, w.Close(), w.Abort())
			}
		}
	case 2:
		err = f.Rename(ctx, name(), name(), core.RenameMode(random.IntN(2)))
	case 3:
		err = f.Rename(ctx, path.Dir(name()), path.Dir(name()), core.RenameNoReplace)
	case 4:
		for _, listing := range f.List(ctx, path.Dir(name())) {
			err = errors.Join(err, listing)
		}
	case 5:
		err = f.RemoveAll(ctx, name())
		f.CrashClone(memfs.CrashConfig{UnsyncedPercent: 50, Rand: random})
	}
	for _, expected := range []error{fs.ErrExist, fs.ErrNotExist, fs.ErrInvalid} {
		if errors.Is(err, expected) {
			return nil
		}
	}
	return err
}
