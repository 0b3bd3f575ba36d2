package sparkckpt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// A log entry is a text file: a line with the version, then JSON, then, in the offset log, a line for each source.
//
//	offsets/<batch>                                        commits/<batch>
//	┌───────────────────────────────────────────────┐      ┌────────────────────────────────────────────────┐
//	│ v1                                            │      │ v1, or v2 in checkpoint format 2               │
//	│ {"batchWatermarkMs":0,"batchTimestampMs":…,   │      │ {"nextBatchWatermarkMs":0,                     │
//	│  "conf":{"spark.sql.…":"…",…}}                │      │  "stateUniqueIds":{"<operator>":               │
//	│ offset of a source, or -                      │      │     [["<id of a store>",…] of each partition]}}│
//	└───────────────────────────────────────────────┘      └────────────────────────────────────────────────┘

// maxLogEntry bounds what is read of a text file. The largest are the ids of a format 2 commit: 40 bytes for each store.
const maxLogEntry = 256 << 20

// OffsetEntry is an entry of the offset log: a batch that was begun.
type OffsetEntry struct {
	WatermarkMs int64
	TimestampMs int64
	// Conf is what the query was pinned to; nil before Spark 2.3.
	Conf map[string]string
	// Sources are the offsets of the sources as text, "-" for one that has none yet.
	Sources []string
}

// CommitEntry is an entry of the commit log: a batch that is done.
type CommitEntry struct {
	Version         int
	NextWatermarkMs int64
	// UniqueIDs are, of each operator and partition, the ids of the state that the batch committed, one for each store. There
	// are none in checkpoint format 1.
	UniqueIDs map[int64][][]string
}

// ParseOffset parses an entry of the offset log. Damage is core.ErrCorrupt, another version core.ErrUnsupportedVersion.
func ParseOffset(data []byte) (OffsetEntry, error) {
	version, body, err := cutVersion(data)
	if err != nil {
		return OffsetEntry{}, err
	}
	if version != 1 {
		return OffsetEntry{}, fmt.Errorf("%w: offset log v%d", core.ErrUnsupportedVersion, version)
	}
	head, sources, found := bytes.Cut(body, []byte("\n"))
	var form struct {
		BatchWatermarkMs int64             `json:"batchWatermarkMs"`
		BatchTimestampMs int64             `json:"batchTimestampMs"`
		Conf             map[string]string `json:"conf"`
	}
	if err := json.Unmarshal(head, &form); err != nil {
		return OffsetEntry{}, fmt.Errorf("%w: offset log: %w", core.ErrCorrupt, err)
	}
	entry := OffsetEntry{WatermarkMs: form.BatchWatermarkMs, TimestampMs: form.BatchTimestampMs, Conf: form.Conf}
	if found {
		entry.Sources = strings.Split(strings.TrimSuffix(string(sources), "\n"), "\n")
	}
	return entry, nil
}

// ParseCommit parses an entry of the commit log; the errors are as those of ParseOffset.
func ParseCommit(data []byte) (CommitEntry, error) {
	version, body, err := cutVersion(data)
	if err != nil {
		return CommitEntry{}, err
	}
	if version > 2 {
		return CommitEntry{}, fmt.Errorf("%w: commit log v%d", core.ErrUnsupportedVersion, version)
	}
	var form struct {
		NextBatchWatermarkMs int64                 `json:"nextBatchWatermarkMs"`
		StateUniqueIDs       map[string][][]string `json:"stateUniqueIds"`
	}
	if err := json.Unmarshal(body, &form); err != nil {
		return CommitEntry{}, fmt.Errorf("%w: commit log: %w", core.ErrCorrupt, err)
	}
	entry := CommitEntry{Version: version, NextWatermarkMs: form.NextBatchWatermarkMs}
	for operator, ids := range form.StateUniqueIDs {
		id, ok := parseNumber(operator)
		if !ok {
			return CommitEntry{}, fmt.Errorf("%w: commit log: operator %q", core.ErrCorrupt, operator)
		}
		if entry.UniqueIDs == nil {
			entry.UniqueIDs = map[int64][][]string{}
		}
		entry.UniqueIDs[id] = ids
	}
	return entry, nil
}

// cutVersion cuts off the first line, "v" and a number.
func cutVersion(data []byte) (version int, body []byte, err error) {
	line, body, found := bytes.Cut(data, []byte("\n"))
	digits, isVersion := strings.CutPrefix(string(line), "v")
	version, numErr := strconv.Atoi(digits)
	if !found || !isVersion || numErr != nil || version < 1 {
		return 0, nil, fmt.Errorf("%w: a log entry of %d bytes without a first line such as v1", core.ErrCorrupt, len(data))
	}
	return version, body, nil
}

// parseNumber parses a canonical number of at least 0, as the names of batches, operators and partitions are.
func parseNumber(name string) (int64, bool) {
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == name
}

// readText reads a whole text file.
func readText(ctx context.Context, fsys core.FileSystem, name string) ([]byte, error) {
	r, err := fsys.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // nothing is lost when a read-only file fails to close
	if r.Size() > maxLogEntry {
		return nil, core.PathError("read", name, fmt.Errorf("%w: %d bytes", core.ErrCorrupt, r.Size()))
	}
	data, err := io.ReadAll(io.LimitReader(r, maxLogEntry))
	return data, core.PathError("read", name, err)
}

// batches lists the entries of a log, ascending. A log that is not there is empty.
func batches(ctx context.Context, fsys core.FileSystem, dir string) ([]int64, error) {
	var numbers []int64
	for info, err := range fsys.List(ctx, dir) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if n, ok := parseNumber(info.Name); ok && info.IsRegular() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// readEntry reads and parses an entry of a log.
func readEntry[E any](ctx context.Context, fsys core.FileSystem, dir string, batch int64, parse func([]byte) (E, error)) (E, error) {
	name := path.Join(dir, strconv.FormatInt(batch, 10))
	data, err := readText(ctx, fsys, name)
	if err != nil {
		var none E
		return none, err
	}
	entry, err := parse(data)
	return entry, core.PathError("read", name, err)
}
