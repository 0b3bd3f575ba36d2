package fstest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

// mapErrors changes the error of every method of the file system; streams keep theirs.
func mapErrors(h *hooks, change func(error) error) {
	inner := h.FileSystem
	h.create = func(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
		w, err := inner.Create(ctx, name, opts)
		return w, change(err)
	}
	h.open = func(ctx context.Context, name string) (core.Reader, error) {
		r, err := inner.Open(ctx, name)
		return r, change(err)
	}
	h.stat = func(ctx context.Context, name string) (core.FileInfo, error) {
		info, err := inner.Stat(ctx, name)
		return info, change(err)
	}
	h.list = func(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
		return func(yield func(core.FileInfo, error) bool) {
			for info, err := range inner.List(ctx, dir) {
				if !yield(info, change(err)) {
					return
				}
			}
		}
	}
	h.mkdirAll = func(ctx context.Context, dir string) error { return change(inner.MkdirAll(ctx, dir)) }
	h.rename = func(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
		return change(inner.Rename(ctx, oldname, newname, mode))
	}
	h.remove = func(ctx context.Context, name string) error { return change(inner.Remove(ctx, name)) }
	h.removeAll = func(ctx context.Context, name string) error { return change(inner.RemoveAll(ctx, name)) }
}

// mapNames changes the names that every method gets.
func mapNames(h *hooks, change func(string) string) {
	inner := h.FileSystem
	h.create = func(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
		return inner.Create(ctx, change(name), opts)
	}
	h.open = func(ctx context.Context, name string) (core.Reader, error) { return inner.Open(ctx, change(name)) }
	h.stat = func(ctx context.Context, name string) (core.FileInfo, error) { return inner.Stat(ctx, change(name)) }
	h.list = func(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
		return inner.List(ctx, change(dir))
	}
	h.mkdirAll = func(ctx context.Context, dir string) error { return inner.MkdirAll(ctx, change(dir)) }
	h.rename = func(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
		return inner.Rename(ctx, change(oldname), change(newname), mode)
	}
	h.remove = func(ctx context.Context, name string) error { return inner.Remove(ctx, change(name)) }
	h.removeAll = func(ctx context.Context, name string) error { return inner.RemoveAll(ctx, change(name)) }
}

// mapContexts changes the contexts that every method gets.
func mapContexts(h *hooks, change func(context.Context) context.Context) {
	inner := h.FileSystem
	h.create = func(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
		return inner.Create(change(ctx), name, opts)
	}
	h.open = func(ctx context.Context, name string) (core.Reader, error) { return inner.Open(change(ctx), name) }
	h.stat = func(ctx context.Context, name string) (core.FileInfo, error) { return inner.Stat(change(ctx), name) }
	h.list = func(ctx context.Context, dir string) iter.Seq2[core.FileInfo, error] {
		return inner.List(change(ctx), dir)
	}
	h.mkdirAll = func(ctx context.Context, dir string) error { return inner.MkdirAll(change(ctx), dir) }
	h.rename = func(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
		return inner.Rename(change(ctx), oldname, newname, mode)
	}
	h.remove = func(ctx context.Context, name string) error { return inner.Remove(change(ctx), name) }
	h.removeAll = func(ctx context.Context, name string) error { return inner.RemoveAll(change(ctx), name) }
}

func badNameRules() []string {
	return []string{"Name/A name*", "Name/An empty name*", "Name/A relative name*", "Name/A bare name*"}
}

func generalFaults() []fault {
	return []fault{
		{
			what:   "errors have no known cause",
			breaks: append(badNameRules(), "Refusal/*", "Context/Stat*", "Context/Rename of a file*"),
			inject: func(_ testing.TB, h *hooks) {
				mapErrors(h, func(err error) error {
					var pathError *fs.PathError
					if errors.As(err, &pathError) {
						return &fs.PathError{Op: pathError.Op, Path: pathError.Path, Err: errors.New("no")}
					}
					return err
				})
			},
		},
		{
			what:   "errors are bare sentinels",
			breaks: []string{"Refusal/*"},
			inject: func(_ testing.TB, h *hooks) {
				mapErrors(h, func(err error) error {
					for _, sentinel := range []error{fs.ErrExist, fs.ErrNotExist, fs.ErrInvalid} {
						if errors.Is(err, sentinel) {
							return sentinel
						}
					}
					return err
				})
			},
		},
		{
			what:   "errors name no operation",
			breaks: []string{"Refusal/*"},
			inject: func(_ testing.TB, h *hooks) {
				mapErrors(h, func(err error) error {
					var pathError *fs.PathError
					if errors.As(err, &pathError) {
						pathError.Op = ""
					}
					return err
				})
			},
		},
		{
			what:   "errors name another path",
			breaks: []string{"Refusal/*"},
			inject: func(_ testing.TB, h *hooks) {
				mapErrors(h, func(err error) error {
					var pathError *fs.PathError
					if errors.As(err, &pathError) {
						pathError.Path = path.Base(pathError.Path)
					}
					return err
				})
			},
		},
		{
			what: "a refused call leaves something behind",
			breaks: append(
				badNameRules(), "Refusal/*", "Remove/RemoveAll of the base*",
				"Durability/A durability that is not declared is refused without effect", "Durability/MinReplicas*",
			),
			inject: func(t testing.TB, h *hooks) {
				var count atomic.Int64
				mapErrors(h, func(err error) error {
					if err != nil {
						litter := fmt.Sprintf("%s/litter-%d-%p", faultyRoot, count.Add(1), h)
						if err := h.FileSystem.MkdirAll(background(), litter); err != nil {
							t.Error(err)
						}
					}
					return err
				})
			},
		},
		{
			what:   "bad names are repaired",
			breaks: badNameRules(),
			inject: func(_ testing.TB, h *hooks) {
				mapNames(h, func(name string) string {
					if !strings.HasPrefix(name, "/") {
						name = faultyRoot + "/" + name
					}
					components := strings.Split(path.Clean(strings.NewReplacer("\x00", "", ":", "").Replace(name)), "/")
					for i, c := range components {
						components[i] = c[:min(len(c), 255)]
					}
					if name = strings.Join(components, "/"); !core.Within(faultyBase, name) {
						name = faultyBase + name
					}
					return name
				})
			},
		},
		{
			what:   "names are unescaped as in a URL",
			breaks: []string{"Name/Any other name works for files and directories"},
			inject: func(_ testing.TB, h *hooks) {
				mapNames(h, func(name string) string {
					if plain, err := url.PathUnescape(name); err == nil {
						return plain
					}
					return name
				})
			},
		},
		{
			what:   "deep names are cut",
			breaks: []string{"Name/Deep names work"},
			inject: func(_ testing.TB, h *hooks) {
				mapNames(h, func(name string) string {
					components := strings.Split(name, "/")
					return strings.Join(components[:min(len(components), 20)], "/")
				})
			},
		},
	}
}

func declarationFaults() []fault {
	return []fault{
		{
			what:   "the URI has no scheme",
			breaks: []string{"Declaration/URI is a scheme and an authority and stays the same"},
			inject: func(_ testing.TB, h *hooks) { h.uri = func() string { return "mem" } },
		},
		{
			what:   "durabilities are declared strongest first",
			breaks: []string{"Declaration/Durabilities are declared weakest first"},
			inject: func(_ testing.TB, h *hooks) {
				h.capabilities = func() core.Capabilities {
					caps := h.FileSystem.Capabilities()
					caps.Durabilities = []core.Durability{core.Synced, core.Unsynced}
					return caps
				}
			},
		},
		{
			what:   "callers share the declared durabilities",
			breaks: []string{"Declaration/Capabilities do not change"},
			inject: func(_ testing.TB, h *hooks) {
				caps := h.FileSystem.Capabilities()
				h.capabilities = func() core.Capabilities { return caps }
			},
		},
		{
			what: "what is not declared is done all the same",
			breaks: []string{
				"Rename/RenameNoReplace moves a file*", "Rename/RenameNoReplace moves a directory*", "RenameRace/RenameNoReplace*",
				"Refusal/RenameNoReplace of a file over a file is ErrExist",
				"Refusal/RenameNoReplace of a directory over a file is ErrExist", "Writer/Sync between writes*",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.capabilities = func() core.Capabilities {
					return core.Capabilities{Durabilities: []core.Durability{core.Unsynced, core.Synced}}
				}
			},
		},
		{
			what:   "what is declared changes from client to client",
			breaks: []string{"Declaration/Two clients of one storage declare the same"},
			instance: func(_ testing.TB, inner *memfs.FS, in *Instance) {
				in.Second = func(testing.TB) core.FileSystem {
					return &hooks{FileSystem: inner, capabilities: func() core.Capabilities {
						caps := inner.Capabilities()
						caps.Sync = false
						return caps
					}}
				}
			},
		},
	}
}
