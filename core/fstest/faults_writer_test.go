package fstest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// onWriters breaks every Writer that a file system makes.
func onWriters(h *hooks, change func(ctx context.Context, name string, w core.Writer) core.Writer) {
	h.create = func(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
		w, err := h.FileSystem.Create(ctx, name, opts)
		if err != nil {
			return nil, err
		}
		return change(ctx, name, w), nil
	}
}

func createFaults() []fault {
	return []fault{
		{
			what: "Create looks whether the name is taken and claims it in Close",
			breaks: []string{
				"Create/Create has exactly one winner of 16 callers on two clients",
				"Create/Create claims the name before Close",
			},
			inject: func(_ testing.TB, h *hooks) {
				var count atomic.Int64
				h.create = func(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
					if _, err := h.FileSystem.Stat(ctx, name); err == nil {
						return nil, core.PathError("create", name, fs.ErrExist)
					}
					temporary := name + "-" + string(rune('a'+count.Add(1)))
					w, err := h.FileSystem.Create(ctx, temporary, opts)
					if err != nil {
						return nil, err
					}
					return &writerHooks{Writer: w, close: func() error {
						return errors.Join(w.Close(), h.FileSystem.Rename(ctx, temporary, name, core.RenameReplace))
					}}, nil
				}
			},
		},
		{
			what: "Create truncates a file that is there",
			breaks: []string{
				"Refusal/Create over a file is ErrExist",
				"Create/Create has exactly one winner of 16 callers on two clients",
				"Create/Create claims the name before Close",
				"Create/Create that finds the name taken leaves the file as it is",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.create = func(ctx context.Context, name string, opts core.CreateOptions) (core.Writer, error) {
					if info, err := h.FileSystem.Stat(ctx, name); err == nil && info.IsRegular() {
						if err := h.FileSystem.Remove(ctx, name); err != nil {
							return nil, err
						}
					}
					return h.FileSystem.Create(ctx, name, opts)
				}
			},
		},
		{
			what:   "MkdirAll is content with a file",
			breaks: []string{"Create/Create and MkdirAll of one name have exactly one winner", "Refusal/MkdirAll of a file is ErrInvalid"},
			inject: func(_ testing.TB, h *hooks) {
				h.mkdirAll = func(ctx context.Context, dir string) error {
					if _, err := h.FileSystem.Stat(ctx, dir); err == nil {
						return nil
					}
					if err := h.FileSystem.MkdirAll(ctx, dir); !errors.Is(err, fs.ErrInvalid) {
						return err
					}
					return nil
				}
			},
		},
		{
			what:   "all Writers share one buffer",
			breaks: []string{"Create/Files are written side by side", "Context/The end of one stream's context leaves*"},
			inject: func(_ testing.TB, h *hooks) {
				var mu sync.Mutex
				var buffer bytes.Buffer
				onWriters(h, func(_ context.Context, _ string, w core.Writer) core.Writer {
					return &writerHooks{
						Writer: w,
						write: func(p []byte) (int, error) {
							mu.Lock()
							defer mu.Unlock()
							return buffer.Write(p)
						},
						close: func() error {
							mu.Lock()
							defer mu.Unlock()
							_, err := buffer.WriteTo(w)
							return errors.Join(err, w.Close())
						},
					}
				})
			},
		},
	}
}

func contentFaults() []fault {
	return []fault{
		{
			what:   "the last byte of a long file is lost",
			breaks: []string{"Content/*"},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, _ string, w core.Writer) core.Writer {
					var held []byte
					return &writerHooks{
						Writer: w,
						write: func(p []byte) (int, error) {
							if len(p) == 0 {
								return 0, nil
							}
							n, err := w.Write(append(held, p[:len(p)-1]...))
							held = []byte{p[len(p)-1]}
							return min(n+1, len(p)), err
						},
					}
				})
			},
		},
		{
			what:   "Write keeps the buffer until Close",
			breaks: []string{"Content/Write neither keeps nor changes the caller's buffer"},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, _ string, w core.Writer) core.Writer {
					var kept [][]byte
					return &writerHooks{
						Writer: w,
						write: func(p []byte) (int, error) {
							kept = append(kept, p)
							return len(p), nil
						},
						close: func() error {
							for _, p := range kept {
								if _, err := w.Write(p); err != nil {
									return err
								}
							}
							kept = nil
							return w.Close()
						},
					}
				})
			},
		},
	}
}

func writerFaults() []fault {
	return []fault{
		{
			what:   "a file appears with its first byte",
			breaks: []string{"Writer/Close without Write makes an empty file"},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, _ string, w core.Writer) core.Writer {
					written := false
					return &writerHooks{
						Writer: w,
						write: func(p []byte) (int, error) {
							written = true
							return w.Write(p)
						},
						close: func() error {
							if !written {
								return w.Abort()
							}
							return w.Close()
						},
					}
				})
			},
		},
		{
			what:   "Write of no bytes fails",
			breaks: []string{"Writer/Write of no bytes is allowed and writes nothing"},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, name string, w core.Writer) core.Writer {
					return &writerHooks{Writer: w, write: func(p []byte) (int, error) {
						if len(p) == 0 {
							return 0, core.PathError("write", name, fs.ErrInvalid)
						}
						return w.Write(p)
					}}
				})
			},
		},
		{
			what: "a second Close is ErrClosed",
			breaks: []string{
				"Writer/A second Close returns nil after the first did",
				"Context/The end of the context after Close changes nothing",
			},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, name string, w core.Writer) core.Writer {
					closed := false
					return &writerHooks{Writer: w, close: func() error {
						if closed {
							return core.PathError("close", name, fs.ErrClosed)
						}
						closed = true
						return w.Close()
					}}
				})
			},
		},
		{
			what: "Write and Sync after the end succeed and do nothing",
			breaks: []string{
				"Writer/Write after Close is ErrClosed and changes nothing", "Writer/Sync after Close is ErrClosed",
				"Abort/Close, Write and Sync after Abort are ErrClosed",
				"Abort/Abort from another goroutine breaks a Writer at work",
			},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, _ string, w core.Writer) core.Writer {
					return &writerHooks{
						Writer: w,
						write: func(p []byte) (int, error) {
							n, err := w.Write(p)
							if errors.Is(err, fs.ErrClosed) {
								return len(p), nil
							}
							return n, err
						},
						sync: func() error {
							if err := w.Sync(); !errors.Is(err, fs.ErrClosed) {
								return err
							}
							return nil
						},
					}
				})
			},
		},
		{
			what:   "Sync is not what was declared",
			breaks: []string{"Writer/Sync between writes*", "Durability/Synced bytes of an open Writer survive a crash"},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, name string, w core.Writer) core.Writer {
					return &writerHooks{Writer: w, sync: func() error {
						return core.PathError("sync", name, errors.ErrUnsupported)
					}}
				})
			},
		},
		{
			what: "Close after a failure returns nil",
			breaks: []string{
				"Writer/A failed Write fails all that follows, and Abort removes the file",
				"Writer/A failed Close stays failed, and Abort removes the file",
				"Context/Close that meets the end of its context tells the truth",
			},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, _ string, w core.Writer) core.Writer {
					failed := false
					return &writerHooks{
						Writer: w,
						write: func(p []byte) (int, error) {
							n, err := w.Write(p)
							failed = failed || err != nil
							return n, err
						},
						close: func() error {
							if failed {
								return nil
							}
							err := w.Close()
							failed = err != nil
							return err
						},
					}
				})
			},
		},
		{
			what: "Close commits nothing and returns nil when the file is gone",
			breaks: []string{
				"Writer/Close fails if the file was removed while it was written",
				"Writer/Close neither commits over nor harms another file that took the name",
			},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, _ string, w core.Writer) core.Writer {
					return &writerHooks{Writer: w, close: func() error {
						if err := w.Close(); !errors.Is(err, fs.ErrNotExist) {
							return err
						}
						return nil
					}}
				})
			},
		},
		{
			what:   "Close puts the file back under the name it was created with",
			breaks: []string{"Writer/A file that is moved while it is written does not come back under its old name"},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(ctx context.Context, name string, w core.Writer) core.Writer {
					return &writerHooks{Writer: w, close: func() error {
						err := w.Close()
						if _, missing := h.FileSystem.Stat(ctx, name); err == nil && missing != nil {
							return writeFile(ctx, h.FileSystem, name, []byte(path.Base(name)), core.CreateOptions{})
						}
						return err
					}}
				})
			},
		},
	}
}

func abortFaults() []fault {
	return []fault{
		{
			what: "Abort leaves the file",
			breaks: []string{
				"Abort/Abort removes the file and frees the name", "Abort/Abort works after the end of the context",
				"Context/A Writer whose context ends fails in Close, and Abort removes the file",
				"Writer/A failed Close stays failed, and Abort removes the file",
			},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, _ string, w core.Writer) core.Writer {
					return &writerHooks{Writer: w, abort: func() error {
						_ = w.Close()
						return nil
					}}
				})
			},
		},
		{
			what: "Abort removes whatever has the name",
			breaks: []string{
				"Abort/Abort after Close returns nil and leaves the file", "Abort/A second Abort is harmless",
				"Abort/Abort never removes another file that took the name",
				"Context/The end of the context after Close changes nothing",
			},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, name string, w core.Writer) core.Writer {
					return &writerHooks{Writer: w, abort: func() error {
						return errors.Join(w.Abort(), h.FileSystem.RemoveAll(background(), name))
					}}
				})
			},
		},
		{
			what: "Close after Abort returns nil",
			breaks: []string{
				"Abort/Close, Write and Sync after Abort are ErrClosed",
				"Abort/Abort from another goroutine breaks a Writer at work",
				"Abort/Abort and Close from two goroutines agree on the outcome",
			},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(_ context.Context, _ string, w core.Writer) core.Writer {
					return &writerHooks{Writer: w, close: func() error {
						if err := w.Close(); !errors.Is(err, fs.ErrClosed) {
							return err
						}
						return nil
					}}
				})
			},
		},
		{
			what: "Abort heeds the context of Create",
			breaks: []string{
				"Abort/Abort works after the end of the context",
				"Writer/A failed Write fails all that follows, and Abort removes the file",
			},
			inject: func(_ testing.TB, h *hooks) {
				onWriters(h, func(ctx context.Context, name string, w core.Writer) core.Writer {
					return &writerHooks{Writer: w, abort: func() error {
						if err := ctx.Err(); err != nil {
							return core.PathError("abort", name, err)
						}
						return w.Abort()
					}}
				})
			},
		},
	}
}
