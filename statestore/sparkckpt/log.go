package sparkckpt

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

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

// ParseOffset parses an entry of the offset log. Damage is core.ErrCorrupt; another version, or a field that is not known
// here, core.ErrUnsupportedVersion.
func ParseOffset(data []byte) (OffsetEntry, error) {
	version, body, err := cutVersion(data)
	if err != nil {
		return OffsetEntry{}, err
	}
	if version != 1 {
		return OffsetEntry{}, fmt.Errorf("%w: offset log v%d", core.ErrUnsupportedVersion, version)
	}
	head, sources, _ := bytes.Cut(body, []byte("\n"))
	var entry OffsetEntry
	err = parseObject(head, map[string]any{"batchWatermarkMs": &entry.WatermarkMs, "batchTimestampMs": &entry.TimestampMs, "conf": &entry.Conf})
	if err == nil {
		entry.Sources, err = parseSources(string(sources))
	}
	if err == nil && (entry.WatermarkMs < 0 || entry.TimestampMs < 0) {
		err = fmt.Errorf("%w: a time before 1970", core.ErrCorrupt)
	}
	if err == nil {
		err = checkPinned(entry.Conf)
	}
	if err != nil {
		return OffsetEntry{}, fmt.Errorf("offset log: %w", err)
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
	entry := CommitEntry{Version: version}
	var operators map[string][][]string
	if err := parseObject(body, map[string]any{"nextBatchWatermarkMs": &entry.NextWatermarkMs, "stateUniqueIds": &operators}); err != nil {
		return CommitEntry{}, fmt.Errorf("commit log: %w", err)
	}
	if entry.NextWatermarkMs < 0 {
		return CommitEntry{}, fmt.Errorf("%w: commit log: a time before 1970", core.ErrCorrupt)
	}
	for operator, ids := range operators {
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

// parseObject parses a JSON object into fields, by their exact names, and refuses what Spark does not write: anything that is
// no object, bytes behind it, text that is not UTF-8, a field of another name.
func parseObject(data []byte, fields map[string]any) error {
	var object map[string]json.RawMessage
	switch err := json.Unmarshal(data, &object); {
	case err != nil:
		return fmt.Errorf("%w: %w", core.ErrCorrupt, err)
	case object == nil:
		return fmt.Errorf("%w: no JSON object", core.ErrCorrupt)
	case !utf8.Valid(data):
		return fmt.Errorf("%w: it is not UTF-8", core.ErrCorrupt)
	}
	for name, value := range object {
		field, known := fields[name]
		if !known {
			return fmt.Errorf("%w: a field %q, which is damage or of a later Spark", core.ErrUnsupportedVersion, name)
		}
		if err := json.Unmarshal(value, field); err != nil {
			return fmt.Errorf("%w: %s: %w", core.ErrCorrupt, name, err)
		}
	}
	return nil
}

// parseSources splits the lines of the sources. What an offset looks like is the source's affair; one that begins as JSON is JSON.
func parseSources(text string) ([]string, error) {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil, nil
	}
	sources := strings.Split(text, "\n")
	for i, source := range sources {
		if strings.HasPrefix(source, "{") && !json.Valid([]byte(source)) {
			return nil, fmt.Errorf("%w: the offset of source %d begins as JSON and is none", core.ErrCorrupt, i)
		}
	}
	return sources, nil
}

// The forms of offsets.
const (
	noOffset = iota
	numberOffset
	objectOffset
	otherOffset
)

func offsetForm(source string) int {
	_, isNumber := strconv.ParseInt(source, 10, 64)
	switch {
	case source == "-":
		return noOffset
	case isNumber == nil:
		return numberOffset
	case strings.HasPrefix(source, "{"):
		return objectOffset
	}
	return otherOffset
}

// checkPinned refuses values that Spark does not write for the keys that this package goes by.
func checkPinned(conf map[string]string) error {
	wrong := func(key string) error { return fmt.Errorf("%w: %s is pinned to %q", core.ErrCorrupt, key, conf[key]) }
	if class, pinned := conf[confProvider]; pinned && class == "" {
		return wrong(confProvider)
	}
	if value, pinned := conf[confRowChecksum]; pinned && !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
		return wrong(confRowChecksum)
	}
	if value, pinned := conf[confPartitions]; pinned {
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || n < 1 || n > maxPartitions {
			return wrong(confPartitions)
		}
	}
	return nil
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
		if info, statErr := fsys.Stat(ctx, name); statErr == nil && !info.IsRegular() {
			err = core.PathError("read", name, fmt.Errorf(
				"%w: it is %s where Spark keeps a file: move it away, and restore the file from a copy", core.ErrCorrupt, describeType(info)))
		}
		return nil, err
	}
	defer func() { _ = r.Close() }() // nothing is lost when a read-only file fails to close
	if r.Size() > maxLogEntry {
		return nil, core.PathError("read", name, fmt.Errorf("%w: %d bytes", core.ErrCorrupt, r.Size()))
	}
	data, err := io.ReadAll(io.LimitReader(r, maxLogEntry))
	return data, core.PathError("read", name, err)
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
