package fstest

import (
	"context"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// linked adds symbolic links to a file system that has none. With follows set it gets wrong what it can.
type linked struct {
	core.FileSystem
	follows bool

	mu    sync.Mutex
	links map[string]string
}

func (l *linked) target(name string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	target, ok := l.links[name]
	return target, ok
}

func (l *linked) Stat(ctx context.Context, name string) (core.FileInfo, error) {
	target, ok := l.target(name)
	switch {
	case !ok:
		return l.FileSystem.Stat(ctx, name)
	case l.follows:
		return l.FileSystem.Stat(ctx, target)
	}
	return core.FileInfo{Name: path.Base(name), Mode: fs.ModeSymlink | 0o777}, nil
}

func (l *linked) List(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
	return func(yield func(core.FileInfo, error) bool) {
		infos, err := collect(ctx, l.FileSystem, dir)
		if err != nil {
			yield(core.FileInfo{}, err)
			return
		}
		l.mu.Lock()
		for name := range l.links {
			if path.Dir(name) == dir {
				infos = append(infos, core.FileInfo{Name: path.Base(name), Mode: fs.ModeSymlink | 0o777})
			}
		}
		l.mu.Unlock()
		slices.SortFunc(infos, func(a, b core.FileInfo) int { return strings.Compare(a.Name, b.Name) })
		for _, info := range infos {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (l *linked) Remove(ctx context.Context, name string) error {
	target, ok := l.target(name)
	if !ok {
		return l.FileSystem.Remove(ctx, name)
	}
	l.mu.Lock()
	delete(l.links, name)
	l.mu.Unlock()
	if l.follows {
		return l.FileSystem.RemoveAll(ctx, target)
	}
	return nil
}

func (l *linked) RemoveAll(ctx context.Context, name string) error {
	if _, ok := l.target(name); ok {
		return l.Remove(ctx, name)
	}
	l.mu.Lock()
	for link := range l.links {
		if core.Within(name, link) {
			delete(l.links, link)
		}
	}
	l.mu.Unlock()
	return l.FileSystem.RemoveAll(ctx, name)
}

func withLinks(follows bool) func(testing.TB, *memfs.FS, *Instance) {
	return func(_ testing.TB, inner *memfs.FS, in *Instance) {
		l := &linked{FileSystem: inner, follows: follows, links: map[string]string{}}
		in.FS = l
		in.Symlink = func(_ testing.TB, target, name string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.links[name] = target
		}
	}
}

func linkFaults() []fault {
	return []fault{{
		what: "symbolic links are followed",
		breaks: []string{
			"Stat/A symbolic link is described and not followed",
			"Remove/Remove and RemoveAll take a symbolic link and never its target",
		},
		instance: withLinks(true),
	}}
}

func TestSymbolicLinkRulesHoldWhereLinksAreNotFollowed(t *testing.T) {
	rules, _ := allRules()
	for _, name := range linkFaults()[0].breaks {
		rec := record(t, rules[name], fault{instance: withLinks(false)}.config())
		require.False(t, rec.Failed(), "%s: %q", name, rec.log)
		require.False(t, rec.skipped)
	}
}
