package fstest

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/memfs"
)

func contextFaults() []fault {
	return []fault{
		{
			what: "contexts are ignored",
			breaks: []string{
				"Context/Rename of a *", "Context/RenameReplace after*", "Context/Create after*", "Context/Open after*",
				"Context/Stat after*", "Context/List after*", "Context/MkdirAll after*", "Context/Remove*",
				"Context/A Writer whose context ends*", "Context/A Writer past its deadline*", "Context/A Reader whose context ends*",
				"Context/The end of one stream's context leaves other streams alone", "Writer/A failed Close*",
			},
			inject: func(_ testing.TB, h *hooks) { mapContexts(h, context.WithoutCancel) },
		},
		{
			what:   "contexts are looked at after the call",
			breaks: []string{"Context/Rename of a *", "Context/RenameReplace after*", "Context/MkdirAll after*", "Context/Remove*"},
			inject: func(_ testing.TB, h *hooks) {
				inner := h.FileSystem
				mapContexts(h, context.WithoutCancel)
				h.mkdirAll = func(ctx context.Context, dir string) error {
					err := inner.MkdirAll(context.WithoutCancel(ctx), dir)
					return errors.Join(err, core.PathError("mkdir", dir, ctx.Err()))
				}
			},
		},
		{
			what:   "Rename is given up in silence when its context ends",
			breaks: []string{"Context/Rename that meets the end of its context has happened or not", "Context/Rename of a *"},
			inject: func(_ testing.TB, h *hooks) {
				h.rename = func(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
					if ctx.Err() != nil {
						return nil
					}
					return h.FileSystem.Rename(ctx, oldname, newname, mode)
				}
			},
		},
		{
			what: "the end of the context undoes Close",
			breaks: []string{
				"Context/The end of the context after Close changes nothing",
			},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(ctx context.Context, name string, w core.Writer) core.Writer {
					return &writerHooks{Writer: w, abort: func() error {
						if ctx.Err() != nil {
							return errors.Join(w.Abort(), h.FileSystem.RemoveAll(background(), name))
						}
						return w.Abort()
					}}
				})
			},
		},
		{
			what:   "one context ends all streams of a client",
			breaks: []string{"Context/The end of one stream's context leaves other streams alone"},
			inject: func(_ testing.TB, h *hooks) {
				var mu sync.Mutex
				var contexts []context.Context
				ended := func() error {
					mu.Lock()
					defer mu.Unlock()
					for _, ctx := range contexts {
						if err := ctx.Err(); err != nil {
							return err
						}
					}
					return nil
				}
				onWriters(h, func(ctx context.Context, name string, w core.Writer) core.Writer {
					mu.Lock()
					defer mu.Unlock()
					contexts = append(contexts, ctx)
					return &writerHooks{Writer: w, write: func(p []byte) (int, error) {
						if err := ended(); err != nil {
							return 0, core.PathError("write", name, err)
						}
						return w.Write(p)
					}}
				})
			},
		},
	}
}

func durabilityFaults() []fault {
	return []fault{
		{
			what: "another client sees nothing",
			breaks: []string{
				"Durability/Every declared durability makes files that another client sees",
				"MkdirAll/MkdirAll makes missing parents, seen by another client",
				"Content/Every length is written in one piece and read back",
			},
			instance: func(t testing.TB, _ *memfs.FS, in *Instance) {
				other := memfs.New(memfs.Options{Base: faultyBase})
				if err := other.MkdirAll(t.Context(), faultyRoot); err != nil {
					t.Fatal(err)
				}
				in.Second = func(testing.TB) core.FileSystem { return other }
			},
		},
		{
			what: "options that cannot be kept are dropped",
			breaks: []string{
				"Durability/A durability that is not declared is refused without effect",
				"Durability/MinReplicas has a meaning where there are replicas and is refused elsewhere",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.create = func(ctx context.Context, name string, _ core.CreateOptions) (core.Writer, error) {
					return h.FileSystem.Create(ctx, name, core.CreateOptions{})
				}
			},
		},
		{
			what: "nothing is synced",
			breaks: []string{
				"Durability/A committed file survives a crash", "Durability/Synced bytes of an open Writer survive a crash",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.create = func(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
					opts.Durability = core.Unsynced
					return h.FileSystem.Create(ctx, name, opts)
				}
			},
		},
		{
			what: "a crash takes what was done last",
			breaks: []string{
				"Durability/A committed file survives a crash", "Durability/A made directory survives a crash",
				"Durability/A renamed file survives a crash under its new name only",
				"Durability/A replaced file is the new one after a crash",
				"Durability/A renamed directory survives a crash under its new name only",
			},
			instance: func(_ testing.TB, inner *memfs.FS, in *Instance) {
				var before, now *memfs.FS
				inner.OnMutation(func(m memfs.Mutation) {
					if m.Step != memfs.DataDurable {
						before, now = now, inner.CrashClone(memfs.CrashConfig{})
					}
				})
				in.Crash = func(testing.TB) core.FileSystem { return before }
			},
		},
	}
}

func leakFaults() []fault {
	// Both are released when the test ends, as by the finaliser or the end of a process that never comes.
	leakDescriptor := func(t testing.TB) {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = f.Close() })
	}
	leakGoroutine := func(t testing.TB) {
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		go func() { <-ctx.Done() }()
	}
	var all []fault
	for what, leak := range map[string]func(t testing.TB){"goroutine": leakGoroutine, "descriptor": leakDescriptor} {
		all = append(all, fault{
			what:   "every call leaks a " + what,
			breaks: []string{"Leak/*"},
			instance: func(t testing.TB, inner *memfs.FS, in *Instance) {
				if what == "descriptor" && countDescriptors() == 0 {
					t.Error("descriptors cannot be counted here")
				}
				h := &hooks{FileSystem: inner}
				in.FS = h
				mapErrors(h, func(err error) error {
					leak(t)
					return err
				})
			},
		}, fault{
			what:   "the file system leaves a " + what + " when it is closed",
			breaks: []string{"Stat/Stat describes a file"},
			instance: func(t testing.TB, _ *memfs.FS, _ *Instance) {
				leak(t.(*recorder).TB) //nolint:forcetypeassert // only the recorder runs faults
			},
		})
	}
	all = append(all, fault{
		what:   "a Reader that is closed stays open",
		breaks: []string{"Reader/Seek reaches every position"},
		instance: func(_ testing.TB, inner *memfs.FS, in *Instance) {
			in.FS = &hooks{FileSystem: inner, open: func(ctx context.Context, name string) (core.Reader, error) {
				if _, err := inner.Open(ctx, name); err != nil {
					return nil, err
				}
				return inner.Open(ctx, name)
			}}
		},
	})
	return slices.Clip(all)
}
