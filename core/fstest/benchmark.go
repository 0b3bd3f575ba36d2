package fstest

import (
	"fmt"
	"io"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Benchmark measures file-system calls. The names are made of parameters, for benchstat.
func Benchmark(b *testing.B, cfg Config) {
	b.Run("op=create", func(b *testing.B) { benchmarkCreate(b, cfg) })
	b.Run("op=write", func(b *testing.B) { benchmarkWrite(b, cfg) })
	b.Run("op=read", func(b *testing.B) { benchmarkRead(b, cfg) })
	b.Run("op=readat", func(b *testing.B) { benchmarkReadAt(b, cfg) })
	b.Run("op=stat", func(b *testing.B) { benchmarkStat(b, cfg) })
	b.Run("op=list", func(b *testing.B) { benchmarkList(b, cfg) })
	b.Run("op=rename", func(b *testing.B) { benchmarkRename(b, cfg) })
	b.Run("op=mkdir", func(b *testing.B) { benchmarkMkdir(b, cfg) })
}

func benchmarkSubject(b *testing.B, cfg Config) *subject {
	b.Helper()
	s := &subject{Instance: cfg.New(b), ctx: b.Context(), rounds: 1}
	s.caps = s.FS.Capabilities()
	return s
}

// benchmarkCreate measures small files, each made, committed and removed.
func benchmarkCreate(b *testing.B, cfg Config) {
	s := benchmarkSubject(b, cfg)
	data := pattern(1, 4<<10)
	for _, d := range s.caps.Durabilities {
		b.Run("size=4KiB/durability="+d.String(), func(b *testing.B) {
			for b.Loop() {
				if err := writeFile(s.ctx, s.FS, s.path("file"), data, core.CreateOptions{Durability: d}); err != nil {
					b.Fatal(err)
				}
				if err := s.FS.Remove(s.ctx, s.path("file")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchmarkWrite measures large files in pieces of 64 KiB, from Create to Close.
func benchmarkWrite(b *testing.B, cfg Config) {
	s := benchmarkSubject(b, cfg)
	piece := pattern(1, 64<<10)
	for _, d := range s.caps.Durabilities {
		for _, mib := range []int{1, 64} {
			b.Run(fmt.Sprintf("size=%dMiB/durability=%s", mib, d), func(b *testing.B) {
				b.SetBytes(int64(mib) << 20)
				for b.Loop() {
					if err := writePieces(s, piece, mib*16, core.CreateOptions{Durability: d}); err != nil {
						b.Fatal(err)
					}
					if err := s.FS.Remove(s.ctx, s.path("file")); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func writePieces(s *subject, piece []byte, n int, opts core.CreateOptions) error {
	w, err := s.FS.Create(s.ctx, s.path("file"), opts)
	if err != nil {
		return err
	}
	defer func() { _ = w.Abort() }() // a no-op after Close
	for range n {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return w.Close()
}

func benchmarkRead(b *testing.B, cfg Config) {
	s := benchmarkSubject(b, cfg)
	for _, mib := range []int{1, 64} {
		name := s.path(fmt.Sprintf("file-%d", mib))
		s.write(b, name, pattern(1, mib<<20))
		b.Run(fmt.Sprintf("size=%dMiB", mib), func(b *testing.B) {
			b.SetBytes(int64(mib) << 20)
			buffer := make([]byte, 64<<10)
			for b.Loop() {
				r, err := s.FS.Open(s.ctx, name)
				if err != nil {
					b.Fatal(err)
				}
				// Only Read, because a WriterTo of the reader is not what is measured.
				if _, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{r}, buffer); err != nil {
					b.Fatal(err)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarkReadAt(b *testing.B, cfg Config) {
	s := benchmarkSubject(b, cfg)
	const size = 16 << 20
	s.write(b, s.path("file"), pattern(1, size))
	r := s.open(b, s.path("file"))
	for _, kib := range []int{4, 1024} {
		b.Run(fmt.Sprintf("size=%dKiB", kib), func(b *testing.B) {
			b.SetBytes(int64(kib) << 10)
			part := make([]byte, kib<<10)
			off := 0
			for b.Loop() {
				if _, err := r.ReadAt(part, int64(off)); err != nil {
					b.Fatal(err)
				}
				off = (off + 5_000_011) % (size - len(part))
			}
		})
	}
}

func benchmarkStat(b *testing.B, cfg Config) {
	s := benchmarkSubject(b, cfg)
	s.write(b, s.path("file"), nil)
	for b.Loop() {
		if _, err := s.FS.Stat(s.ctx, s.path("file")); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkList(b *testing.B, cfg Config) {
	s := benchmarkSubject(b, cfg)
	for _, n := range []int{10, 2000} {
		dir := s.path(fmt.Sprintf("dir-%d", n))
		s.plantMany(b, dir, n)
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			for b.Loop() {
				names, err := list(s.ctx, s.FS, dir)
				if err != nil || len(names) != n {
					b.Fatal(len(names), err)
				}
			}
		})
	}
}

// benchmarkRename moves a file forth and back.
func benchmarkRename(b *testing.B, cfg Config) {
	s := benchmarkSubject(b, cfg)
	s.write(b, s.path("file-a"), nil)
	oldname, newname := s.path("file-a"), s.path("file-b")
	for b.Loop() {
		if err := s.FS.Rename(s.ctx, oldname, newname, s.fileMode()); err != nil {
			b.Fatal(err)
		}
		oldname, newname = newname, oldname
	}
}

// benchmarkMkdir makes and removes a directory.
func benchmarkMkdir(b *testing.B, cfg Config) {
	s := benchmarkSubject(b, cfg)
	for b.Loop() {
		if err := s.FS.MkdirAll(s.ctx, s.path("dir")); err != nil {
			b.Fatal(err)
		}
		if err := s.FS.Remove(s.ctx, s.path("dir")); err != nil {
			b.Fatal(err)
		}
	}
}
