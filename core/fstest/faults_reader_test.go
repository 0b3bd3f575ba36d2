package fstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// onReaders breaks every Reader that a file system makes.
func onReaders(h *hooks, change func(ctx context.Context, name string, r core.Reader) core.Reader) {
	h.open = func(ctx context.Context, name string) (core.Reader, error) {
		r, err := h.FileSystem.Open(ctx, name)
		if err != nil {
			return nil, err
		}
		return change(ctx, name, r), nil
	}
}

func readerFaults() []fault {
	return []fault{
		{
			what: "io.EOF comes wrapped",
			breaks: []string{
				"Reader/Read, ReadAt and Seek behave as io says", "Reader/Read ends in a bare io.EOF, again and again",
				"Reader/ReadAt at and past the end is a bare io.EOF", "Reader/Seek past the end is allowed and Read is then io.EOF",
			},
			inject: func(_ testing.TB, h *hooks) {
				onReaders(h, func(_ context.Context, name string, r core.Reader) core.Reader {
					return &readerHooks{
						Reader: r,
						read: func(p []byte) (int, error) {
							n, err := r.Read(p)
							return n, core.PathError("read", name, err)
						},
						readAt: func(p []byte, off int64) (int, error) {
							n, err := r.ReadAt(p, off)
							return n, core.PathError("read", name, err)
						},
					}
				})
			},
		},
		{
			what:   "a negative offset is the beginning",
			breaks: []string{"Reader/ReadAt with a negative offset is ErrInvalid"},
			inject: func(_ testing.TB, h *hooks) {
				onReaders(h, func(_ context.Context, _ string, r core.Reader) core.Reader {
					return &readerHooks{Reader: r, readAt: func(p []byte, off int64) (int, error) {
						return r.ReadAt(p, max(off, 0))
					}}
				})
			},
		},
		{
			what: "ReadAt is Seek and Read",
			breaks: []string{
				"Reader/ReadAt does not move the position of Read", "Reader/ReadAt serves 16 goroutines at once",
			},
			inject: func(_ testing.TB, h *hooks) {
				onReaders(h, func(_ context.Context, _ string, r core.Reader) core.Reader {
					var mu sync.Mutex
					seek := func(off int64, whence int) (int64, error) {
						mu.Lock()
						defer mu.Unlock()
						return r.Seek(off, whence)
					}
					read := func(p []byte) (int, error) {
						mu.Lock()
						defer mu.Unlock()
						return r.Read(p)
					}
					return &readerHooks{Reader: r, seek: seek, read: read, readAt: func(p []byte, off int64) (int, error) {
						if _, err := seek(off, io.SeekStart); err != nil {
							return 0, err
						}
						runtime.Gosched()
						return io.ReadFull(readerFunc(read), p)
					}}
				})
			},
		},
		{
			what: "Seek stays within the file",
			breaks: []string{
				"Reader/Seek past the end is allowed and Read is then io.EOF", "Reader/Seek to before the beginning*",
			},
			inject: func(_ testing.TB, h *hooks) {
				onReaders(h, func(_ context.Context, _ string, r core.Reader) core.Reader {
					return &readerHooks{Reader: r, seek: func(offset int64, whence int) (int64, error) {
						at, err := r.Seek(offset, whence)
						if errors.Is(err, fs.ErrInvalid) {
							return r.Seek(0, io.SeekStart)
						}
						if at > r.Size() {
							return r.Seek(0, io.SeekEnd)
						}
						return at, err
					}}
				})
			},
		},
		{
			what:   "Seek from the end goes the other way",
			breaks: []string{"Reader/Seek reaches every position"},
			inject: func(_ testing.TB, h *hooks) {
				onReaders(h, func(_ context.Context, _ string, r core.Reader) core.Reader {
					return &readerHooks{Reader: r, seek: func(offset int64, whence int) (int64, error) {
						if whence == io.SeekEnd {
							offset = -offset
						}
						return r.Seek(offset, whence)
					}}
				})
			},
		},
		{
			what:   "a second Close of a Reader fails",
			breaks: []string{"Reader/Close is idempotent, and everything after it is ErrClosed"},
			inject: func(_ testing.TB, h *hooks) {
				onReaders(h, func(_ context.Context, name string, r core.Reader) core.Reader {
					closed := false
					return &readerHooks{Reader: r, close: func() error {
						if closed {
							return core.PathError("close", name, fs.ErrClosed)
						}
						closed = true
						return r.Close()
					}}
				})
			},
		},
		{
			what: "every read opens the file anew by its name",
			breaks: []string{
				"Reader/An open Reader never mixes: *", "Reader/A file that is still written is read as it was when it was opened",
			},
			inject: func(_ testing.TB, h *hooks) {
				onReaders(h, func(ctx context.Context, name string, r core.Reader) core.Reader {
					readAt := func(p []byte, off int64) (int, error) {
						fresh, err := h.FileSystem.Open(ctx, name)
						if err != nil {
							return 0, err
						}
						defer func() { _ = fresh.Close() }()
						return fresh.ReadAt(p, off)
					}
					position := int64(0)
					return &readerHooks{Reader: r, readAt: readAt, read: func(p []byte) (int, error) {
						n, err := readAt(p, position)
						position += int64(n)
						if n > 0 && errors.Is(err, io.EOF) {
							err = nil
						}
						return n, err
					}}
				})
			},
		},
		{
			what: "Stat gives the whole name and no size",
			breaks: []string{
				"Stat/Stat describes a file", "Stat/Stat describes a directory",
				"Stat/Stat describes the directory of the subtest by its base name", "Stat/Stat and List agree",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.stat = func(ctx context.Context, name string) (core.FileInfo, error) {
					info, err := h.FileSystem.Stat(ctx, name)
					if err == nil {
						info.Name, info.Size = name, 0
					}
					return info, err
				}
			},
		},
		{
			what:   "reads may mix old and new bytes of a replaced file",
			breaks: []string{"RenameRace/RenameReplace under readers shows the old file or the new one"},
			inject: func(_ testing.TB, h *hooks) {
				onReaders(h, func(ctx context.Context, name string, r core.Reader) core.Reader {
					return &readerHooks{Reader: r, readAt: func(p []byte, off int64) (int, error) {
						half := len(p) / 2
						if n, err := r.ReadAt(p[:half], off); err != nil {
							return n, err
						}
						// Until the file has been replaced, or will not be any more.
						for range 50 {
							runtime.Gosched()
							fresh, err := h.FileSystem.Open(ctx, name)
							if err != nil {
								return half, err
							}
							n, err := fresh.ReadAt(p[half:], off+int64(half))
							changed := fresh.Size() != r.Size()
							if err := fresh.Close(); err != nil {
								return half, err
							}
							if changed || err != nil && !errors.Is(err, io.EOF) {
								return half + n, fmt.Errorf("mixed: %w", errors.Join(err, io.ErrUnexpectedEOF))
							}
						}
						return len(p), nil
					}}
				})
			},
		},
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
