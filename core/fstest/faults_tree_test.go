package fstest

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// collect returns what List yields, and its error.
func collect(ctx context.Context, fsys core.FileSystem, dir string) ([]core.FileInfo, error) {
	var infos []core.FileInfo
	for info, err := range fsys.List(ctx, dir) {
		if err != nil {
			return infos, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// onListings changes what List yields.
func onListings(h *hooks, change func(dir string, infos []core.FileInfo, err error) ([]core.FileInfo, error)) {
	h.list = func(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
		return func(yield func(core.FileInfo, error) bool) {
			infos, err := collect(ctx, h.FileSystem, dir)
			infos, err = change(dir, infos, err)
			for _, info := range infos {
				if !yield(info, nil) {
					return
				}
			}
			if err != nil {
				yield(core.FileInfo{}, err)
			}
		}
	}
}

func listFaults() []fault {
	return []fault{
		{
			what: "List ends after its first page",
			breaks: []string{
				"List/List is complete and ordered past 2,500 entries, and may stop anywhere",
				"List/List yields what stays exactly once while other entries come and go",
				"List/List is complete or ends in an error when its context ends meanwhile",
			},
			inject: func(_ testing.TB, h *hooks) {
				onListings(h, func(_ string, infos []core.FileInfo, err error) ([]core.FileInfo, error) {
					return infos[:min(len(infos), 1000)], err
				})
			},
		},
		{
			what:   "List sorts by UTF-16",
			breaks: []string{"List/List is in byte order, which is not the order of words or of UTF-16"},
			inject: func(_ testing.TB, h *hooks) {
				onListings(h, func(_ string, infos []core.FileInfo, err error) ([]core.FileInfo, error) {
					slices.SortFunc(infos, func(a, b core.FileInfo) int {
						return slices.Compare(utf16.Encode([]rune(a.Name)), utf16.Encode([]rune(b.Name)))
					})
					return infos, err
				})
			},
		},
		{
			what: "List yields the directory itself",
			breaks: []string{
				"List/List of an empty directory yields nothing", "List/List yields the direct children with their kinds and sizes",
			},
			inject: func(_ testing.TB, h *hooks) {
				onListings(h, func(_ string, infos []core.FileInfo, err error) ([]core.FileInfo, error) {
					return append([]core.FileInfo{{Name: ".", Mode: fs.ModeDir | 0o700}}, infos...), err
				})
			},
		},
		{
			what:   "List of a file yields the file",
			breaks: []string{"Refusal/List of a file is ErrInvalid"},
			inject: func(_ testing.TB, h *hooks) {
				onListings(h, func(dir string, infos []core.FileInfo, err error) ([]core.FileInfo, error) {
					if errors.Is(err, fs.ErrInvalid) {
						return []core.FileInfo{{Name: path.Base(dir)}}, nil
					}
					return infos, err
				})
			},
		},
		{
			what:   "List pages by position",
			breaks: []string{"List/List yields what stays exactly once while other entries come and go"},
			inject: func(_ testing.TB, h *hooks) {
				h.list = func(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
					return func(yield func(core.FileInfo, error) bool) {
						for at := 0; ; {
							infos, err := collect(ctx, h.FileSystem, dir)
							if err != nil {
								yield(core.FileInfo{}, err)
								return
							}
							if at >= len(infos) {
								return
							}
							for _, info := range infos[at:min(at+1000, len(infos))] {
								if !yield(info, nil) {
									return
								}
								at++
							}
						}
					}
				}
			},
		},
		{
			what:   "a listing can be used once",
			breaks: []string{"List/List of one directory may be repeated"},
			inject: func(_ testing.TB, h *hooks) {
				h.list = func(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
					used := false
					return func(yield func(core.FileInfo, error) bool) {
						if used {
							return
						}
						used = true
						h.FileSystem.List(ctx, dir)(yield)
					}
				}
			},
		},
		{
			what:   "List goes on after an error",
			breaks: []string{"List/List ends after an error, which comes with a zero FileInfo"},
			inject: func(_ testing.TB, h *hooks) {
				h.list = func(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
					return func(yield func(core.FileInfo, error) bool) {
						for info, err := range h.FileSystem.List(ctx, dir) {
							if !yield(info, err) || err != nil && !yield(info, err) {
								return
							}
						}
					}
				}
			},
		},
		{
			what:   "List swallows the end of its context",
			breaks: []string{"List/List is complete or ends in an error when its context ends meanwhile", "Context/List after*"},
			inject: func(_ testing.TB, h *hooks) {
				h.list = func(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
					return func(yield func(core.FileInfo, error) bool) {
						for info, err := range h.FileSystem.List(ctx, dir) {
							if errors.Is(err, context.Canceled) || !yield(info, err) {
								return
							}
						}
					}
				}
			},
		},
		{
			what: "a client remembers what it has listed",
			breaks: []string{
				"List/List at another client sees what was made and removed",
			},
			inject: func(_ testing.TB, h *hooks) {
				var mu sync.Mutex
				cache := map[string][]core.FileInfo{}
				onListings(h, func(dir string, infos []core.FileInfo, err error) ([]core.FileInfo, error) {
					mu.Lock()
					defer mu.Unlock()
					if cached, ok := cache[dir]; ok {
						return cached, nil
					}
					if err == nil {
						cache[dir] = infos
					}
					return infos, err
				})
			},
		},
		{
			what:   "List says nothing of kind and permission",
			breaks: []string{"Stat/Stat and List agree", "List/List yields the direct children with their kinds and sizes"},
			inject: func(_ testing.TB, h *hooks) {
				onListings(h, func(_ string, infos []core.FileInfo, err error) ([]core.FileInfo, error) {
					for i := range infos {
						infos[i].Mode = 0
					}
					return infos, err
				})
			},
		},
	}
}

func treeFaults() []fault {
	return slices.Concat(mkdirFaults(), removeFaults())
}

func mkdirFaults() []fault {
	return []fault{
		{
			what: "MkdirAll makes no parents",
			breaks: []string{
				"MkdirAll/MkdirAll makes missing parents, seen by another client", "Durability/A made directory survives a crash",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.mkdirAll = func(ctx context.Context, dir string) error {
					if _, err := h.FileSystem.Stat(ctx, path.Dir(dir)); err != nil {
						return core.PathError("mkdir", dir, fs.ErrNotExist)
					}
					return h.FileSystem.MkdirAll(ctx, dir)
				}
			},
		},
		{
			what: "MkdirAll of an existing directory fails",
			breaks: []string{
				"MkdirAll/MkdirAll of an existing directory succeeds and leaves it as it is",
				"MkdirAll/MkdirAll by 16 callers on two clients succeeds for all",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.mkdirAll = func(ctx context.Context, dir string) error {
					if _, err := h.FileSystem.Stat(ctx, dir); err == nil {
						return core.PathError("mkdir", dir, fs.ErrExist)
					}
					return h.FileSystem.MkdirAll(ctx, dir)
				}
			},
		},
		{
			what:   "MkdirAll makes parents anew",
			breaks: []string{"MkdirAll/MkdirAll of siblings at once keeps them all"},
			inject: func(_ testing.TB, h *hooks) {
				h.mkdirAll = func(ctx context.Context, dir string) error {
					if parent := path.Dir(dir); parent != faultyRoot && core.Within(faultyRoot, parent) {
						if err := h.FileSystem.RemoveAll(ctx, parent); err != nil {
							return err
						}
					}
					return h.FileSystem.MkdirAll(ctx, dir)
				}
			},
		},
	}
}

func removeFaults() []fault {
	return []fault{
		{
			what: "Remove does nothing",
			breaks: []string{
				"Remove/Remove removes a file or an empty directory and nothing else", "Remove/Remove has exactly one winner",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.remove = func(context.Context, string) error { return nil }
			},
		},
		{
			what:   "Remove removes trees",
			breaks: []string{"Refusal/Remove of a directory that*", "Refusal/Remove of a missing file is ErrNotExist"},
			inject: func(_ testing.TB, h *hooks) { h.remove = h.FileSystem.RemoveAll },
		},
		{
			what:   "RemoveAll takes a name for a prefix",
			breaks: []string{"Remove/RemoveAll removes a tree and nothing beside it", "Remove/RemoveAll of a missing name succeeds"},
			inject: func(_ testing.TB, h *hooks) {
				h.removeAll = func(ctx context.Context, name string) error {
					infos, err := collect(ctx, h.FileSystem, path.Dir(name))
					if err != nil {
						return h.FileSystem.RemoveAll(ctx, name)
					}
					for _, info := range infos {
						if strings.HasPrefix(info.Name, path.Base(name)) {
							if err := h.FileSystem.RemoveAll(ctx, path.Join(path.Dir(name), info.Name)); err != nil {
								return err
							}
						}
					}
					return nil
				}
			},
		},
		{
			what: "RemoveAll is for directories that exist",
			breaks: []string{
				"Remove/RemoveAll removes a file or an empty directory", "Remove/RemoveAll of a missing name succeeds",
				"Remove/RemoveAll by several callers at once succeeds for all",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.removeAll = func(ctx context.Context, name string) error {
					if _, err := collect(ctx, h.FileSystem, name); err != nil {
						return err
					}
					return h.FileSystem.RemoveAll(ctx, name)
				}
			},
		},
		{
			what:   "RemoveAll of the base empties it",
			breaks: []string{"Remove/RemoveAll of the base is ErrInvalid"},
			instance: func(_ testing.TB, inner *memfs.FS, in *Instance) {
				in.FS = &hooks{FileSystem: inner, removeAll: func(ctx context.Context, name string) error {
					if name == faultyBase {
						return inner.RemoveAll(ctx, faultyRoot)
					}
					return inner.RemoveAll(ctx, name)
				}}
			},
		},
	}
}
