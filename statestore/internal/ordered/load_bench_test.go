package ordered_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
	"github.com/hdfsckpt/hdfsckpt/statestore/internal/ordered"
)

// snapshotOf writes n rows as an lz4 snapshot: in key order with a footer as we do, or in another order without, as Spark.
func snapshotOf(b *testing.B, n int, ours bool) []byte {
	var out bytes.Buffer
	w, err := codec.NewWriter(&out, codec.Snapshot, codec.WriterOptions{NoFooter: !ours})
	if err != nil {
		b.Fatal(err)
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	rows, key := newRows(1), make([]byte, 16)
	for i := range n {
		if !ours {
			i = order[i]
		}
		binary.BigEndian.PutUint64(key[8:], uint64(i))
		if err := w.Put(key, rows.newValue()); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// BenchmarkLoadSnapshot makes a version of a snapshot of a million rows, which has about 94 MB.
func BenchmarkLoadSnapshot(b *testing.B) {
	const n = 1_000_000
	for _, ours := range []bool{false, true} {
		file := snapshotOf(b, n, ours)
		for _, parallelism := range []int{1, 2} {
			for name, load := range map[string]func(*codec.Reader, int) (*ordered.Map, error){"loader": loadBatches, "builder": loadSorted} {
				if name == "builder" && !ours {
					continue
				}
				b.Run(fmt.Sprintf("ours=%t/parallelism=%d/%s", ours, parallelism, name), func(b *testing.B) {
					b.SetBytes(int64(len(file)))
					for b.Loop() {
						opts := codec.ReaderOptions{Parallelism: parallelism, Keep: name == "loader"}
						r, err := codec.NewReader(bytes.NewReader(file), int64(len(file)), codec.Snapshot, opts)
						if err != nil {
							b.Fatal(err)
						}
						m, err := load(r, parallelism)
						if err != nil || m.Len() != n {
							b.Fatal(m.Len(), err)
						}
						_ = r.Close()
					}
				})
			}
		}
	}
}

func loadBatches(r *codec.Reader, parallelism int) (*ordered.Map, error) {
	l := ordered.Loader{Parallelism: parallelism}
	var batch codec.Batch
	for {
		err := r.NextBatch(&batch)
		if errors.Is(err, io.EOF) {
			return l.Map(), nil
		}
		if err != nil {
			return nil, err
		}
		l.PutShared(batch.Content, batch.Offsets, batch.Skip, batch.Floor)
	}
}

func loadSorted(r *codec.Reader, _ int) (*ordered.Map, error) {
	var builder ordered.Builder
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return builder.Map(), nil
		}
		if err != nil {
			return nil, err
		}
		if err := builder.Append(rec.Key, rec.Value); err != nil {
			return nil, err
		}
	}
}
