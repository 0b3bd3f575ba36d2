package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// benchRecords are like those of a stateful query: a key of 16 B, and a value of 104 B, most of it noise.
func benchRecords(n int) []record {
	r := rand.New(rand.NewPCG(1, 2))
	records := make([]record, n)
	for i := range records {
		value := make([]byte, 104)
		value[8], value[12] = 84, 16
		for j := 16; j < 100; j++ {
			value[j] = byte(r.Uint32())
		}
		records[i] = record{key: fmt.Sprintf("%016d", i), value: string(value)}
	}
	return records
}

func BenchmarkWrite(b *testing.B) {
	records := benchRecords(100_000)
	for _, c := range allCompressions {
		for _, parallelism := range []int{1, 2} {
			b.Run(fmt.Sprintf("codec=%s/parallelism=%d", c, parallelism), func(b *testing.B) {
				b.SetBytes(int64(len(records) * 128))
				b.ReportAllocs()
				for b.Loop() {
					w, err := codec.NewWriter(io.Discard, codec.Snapshot, codec.WriterOptions{Compression: c, Parallelism: parallelism})
					if err != nil {
						b.Fatal(err)
					}
					for _, r := range records {
						if err := w.Put([]byte(r.key), []byte(r.value)); err != nil {
							b.Fatal(err)
						}
					}
					if err := w.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	records := benchRecords(100_000)
	for _, c := range allCompressions {
		file := write(b, codec.Snapshot, codec.WriterOptions{Compression: c}, records)
		for _, parallelism := range []int{1, 2} {
			b.Run(fmt.Sprintf("codec=%s/parallelism=%d", c, parallelism), func(b *testing.B) {
				b.SetBytes(int64(len(records) * 128))
				b.ReportAllocs()
				for b.Loop() {
					drain(b, file, codec.Snapshot, codec.ReaderOptions{Parallelism: parallelism}, len(records))
				}
			})
		}
	}
}

// BenchmarkSmallDelta is what a partition with few changes pays for each batch.
func BenchmarkSmallDelta(b *testing.B) {
	records := benchRecords(10)
	for _, c := range allCompressions {
		file := write(b, codec.Delta, codec.WriterOptions{Compression: c}, records)
		b.Run("write/codec="+c.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				write(b, codec.Delta, codec.WriterOptions{Compression: c}, records)
			}
		})
		b.Run("read/codec="+c.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				drain(b, file, codec.Delta, codec.ReaderOptions{}, len(records))
			}
		})
	}
}

func drain(b *testing.B, file []byte, kind codec.Kind, opts codec.ReaderOptions, want int) {
	r, err := codec.NewReader(bytes.NewReader(file), int64(len(file)), kind, opts)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	n := 0
	for {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		n++
	}
	if n != want {
		b.Fatalf("%d records, not %d", n, want)
	}
}
