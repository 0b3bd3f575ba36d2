package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore/codec"
)

// readBatches is read by NextBatch. With Keep it looks at the batches only when all were read.
func readBatches(b []byte, opts codec.ReaderOptions) ([]record, error) {
	r, err := codec.NewReader(bytes.NewReader(b), int64(len(b)), codec.Snapshot, opts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var (
		records []record
		kept    []codec.Batch
		batch   codec.Batch
	)
	for err = r.NextBatch(&batch); err == nil; err = r.NextBatch(&batch) {
		if opts.Keep {
			kept = append(kept, batch)
			batch = codec.Batch{}
		} else {
			records = appendBatch(records, batch)
		}
	}
	_ = r.Close()
	for _, batch := range kept {
		records = appendBatch(records, batch)
	}
	if again := r.NextBatch(&batch); !errors.Is(again, err) {
		return records, fmt.Errorf("%w, then %w", err, again)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return records, err
}

func appendBatch(records []record, b codec.Batch) []record {
	for _, off := range b.Offsets {
		c := b.Content[off:]
		n := binary.BigEndian.Uint32(c)
		key, c := c[4:4+n], c[4+n:]
		value := c[4:][:binary.BigEndian.Uint32(c)][b.Skip:]
		records = append(records, record{key: string(key), value: string(value[:len(value)/b.Floor*b.Floor])})
	}
	return records
}

func TestBatchesHoldTheSameRecords(t *testing.T) {
	r := seeded(t)
	records := randomRecords(r, codec.Snapshot, 400)
	for _, c := range allCompressions {
		for _, rows := range []bool{false, true} {
			for _, noFooter := range []bool{false, true} {
				file := write(t, codec.Snapshot, codec.WriterOptions{Compression: c, RowChecksum: rows, NoFooter: noFooter}, records)
				for _, parallelism := range []int{0, 3} {
					for _, keep := range []bool{false, true} {
						got, err := readBatches(file, codec.ReaderOptions{RowChecksum: rows, Parallelism: parallelism, Keep: keep})
						require.NoError(t, err)
						require.Equal(t, records, got, "%s, row checksums %t, no footer %t, parallelism %d, keep %t", c, rows, noFooter, parallelism, keep)
					}
				}
			}
		}
	}
}

func TestKeptRecordsStay(t *testing.T) {
	records := randomRecords(seeded(t), codec.Snapshot, 400)
	for _, c := range allCompressions {
		file := write(t, codec.Snapshot, codec.WriterOptions{Compression: c}, records)
		reader, err := codec.NewReader(bytes.NewReader(file), int64(len(file)), codec.Snapshot, codec.ReaderOptions{Keep: true, Parallelism: 2})
		require.NoError(t, err)
		var kept []codec.Record
		for rec, err := range reader.All() {
			require.NoError(t, err)
			kept = append(kept, rec)
		}
		require.NoError(t, reader.Close())
		_, err = read(file, codec.Snapshot, codec.ReaderOptions{}) // takes the buffers that may be used again
		require.NoError(t, err)
		for i, rec := range kept {
			got := record{key: string(rec.Key), value: string(rec.Value)}
			require.Equal(t, records[i], got, "%s, record %d", c, i)
		}
	}
}

func TestABatchBeginsWhereSeekWent(t *testing.T) {
	records := randomRecords(seeded(t), codec.Snapshot, 600)
	for _, c := range allCompressions {
		file := write(t, codec.Snapshot, codec.WriterOptions{Compression: c}, records)
		for _, i := range []int{0, 1, 300, 599} {
			reader, err := codec.NewReader(bytes.NewReader(file), int64(len(file)), codec.Snapshot, codec.ReaderOptions{})
			require.NoError(t, err)
			require.NoError(t, reader.Seek([]byte(records[i].key)))
			var got []record
			var batch codec.Batch
			for err = reader.NextBatch(&batch); err == nil; err = reader.NextBatch(&batch) {
				got = appendBatch(got, batch)
			}
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, records[i:], got)
			require.NoError(t, reader.Close())
		}
	}
}

func TestBatchesOfDamagedFiles(t *testing.T) {
	records := randomRecords(seeded(t), codec.Snapshot, 100)
	for _, c := range allCompressions {
		file := write(t, codec.Snapshot, codec.WriterOptions{Compression: c}, records)
		for i := 0; i < len(file); i += 1 + len(file)/25 {
			damaged := bytes.Clone(file)
			damaged[i] ^= 0x40
			_, err := readBatches(damaged, codec.ReaderOptions{Keep: true})
			require.Error(t, err, "%s, byte %d", c, i)
			_, err = readBatches(file[:i], codec.ReaderOptions{Parallelism: 2})
			require.Error(t, err, "%s, cut at %d", c, i)
		}
	}
}

func TestOnlySnapshotsHaveBatches(t *testing.T) {
	file := write(t, codec.Delta, codec.WriterOptions{}, []record{{key: "k", removed: true}})
	r, err := codec.NewReader(bytes.NewReader(file), int64(len(file)), codec.Delta, codec.ReaderOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, r.NextBatch(&codec.Batch{}), fs.ErrInvalid)
	_, err = r.Next()
	require.NoError(t, err)
	require.NoError(t, r.Close())

	file = write(t, codec.Delta, codec.WriterOptions{NoFooter: true}, []record{{key: "k", removed: true}})
	_, err = readBatches(file, codec.ReaderOptions{})
	require.ErrorIs(t, err, core.ErrCorrupt, "a removal in a snapshot")
}
