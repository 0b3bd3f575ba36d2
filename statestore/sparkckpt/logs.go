package sparkckpt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// ErrNoEntry says that a name in a log is taken for an entry and cannot be one. Such an error is also core.ErrCorrupt.
var ErrNoEntry = errors.New("no entry of Spark's")

// maxBatch is more than any query comes to, and leaves room for the version that it commits.
const maxBatch = 1 << 53

// batchLog is a log as its directory was when it was listed.
type batchLog struct {
	dir string
	// batches are those that names are there for, ascending; irregular are those of them that are no files.
	batches   []int64
	irregular map[int64]bool
	// problems are names that cannot be an entry and that Spark, or whoever reads the log, takes for one: *fs.PathError.
	problems []error
}

func (l batchLog) last() int64 {
	if len(l.batches) == 0 {
		return -1
	}
	return l.batches[len(l.batches)-1]
}

func (l batchLog) name(batch int64) string { return path.Join(l.dir, strconv.FormatInt(batch, 10)) }

// listLog lists a log. One that is not there is empty.
func listLog(ctx context.Context, fsys core.FileSystem, dir string) (batchLog, error) {
	l := batchLog{dir: dir, irregular: map[int64]bool{}}
	damaged := func(name, format string, args ...any) {
		l.problems = append(l.problems, core.PathError("read", name, fmt.Errorf("%w: "+format, append([]any{core.ErrCorrupt}, args...)...)))
	}
	for info, err := range fsys.List(ctx, dir) {
		if errors.Is(err, fs.ErrNotExist) {
			return l, nil
		}
		if err != nil {
			if is, statErr := fsys.Stat(ctx, dir); statErr == nil && !is.IsDir() {
				damaged(dir, "it is %s where Spark keeps the directory of a log: move it away, and restore the log from a copy", describeType(is))
				return l, nil
			}
			return l, err
		}
		n, ok := parseNumber(info.Name)
		name := path.Join(dir, info.Name)
		switch {
		case !ok && isJavaLong(info.Name):
			damaged(name, "%w: Spark takes it for batch %s and writes no such name", ErrNoEntry, info.Name)
		case !ok:
		case n > maxBatch:
			damaged(name, "%w: no query has so many batches", ErrNoEntry)
		default:
			l.batches = append(l.batches, n)
			if !info.IsRegular() {
				l.irregular[n] = true
				damaged(name, "it is %s where Spark keeps a file: move it away, and restore the file from a copy", describeType(info))
			}
		}
	}
	slices.Sort(l.batches)
	return l, nil
}

// describeType says what is in the place of a file.
func describeType(info core.FileInfo) string {
	switch {
	case info.IsDir():
		return "a directory"
	case info.Mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case info.Mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "no regular file"
}

// missingEntry is a *fs.PathError that is both fs.ErrNotExist and core.ErrCorrupt.
func missingEntry(name, format string, args ...any) error {
	return core.PathError("read", name, fmt.Errorf("%w: %w: "+format, append([]any{core.ErrCorrupt, fs.ErrNotExist}, args...)...))
}

// gaps are batches that a log skips. Spark cleans up from below and appends above.
func (l batchLog) gaps() (problems []error) {
	for i := 1; i < len(l.batches); i++ {
		first, last := l.batches[i-1]+1, l.batches[i]-1
		switch {
		case first == last:
			problems = append(problems, missingEntry(l.name(first), "the log has the batches before and after it"))
		case first < last:
			problems = append(problems, missingEntry(l.name(first), "the log has none of the batches %d to %d, and has those before and after them", first, last))
		}
	}
	return problems
}

// contradictions tells what one log needs of the other. begun is the offset log as it was before the commit log was listed,
// and offsets as it was afterwards: a query that is running appends to both, and to the offset log first.
func contradictions(begun, commits, offsets batchLog) (problems []error) {
	if last := commits.last(); last > offsets.last() {
		problems = append(problems, missingEntry(offsets.name(last), "batch %d is in the commit log, and the offset log ends with %d", last, offsets.last()))
	}
	// Before Spark 2.2 there is no commit log.
	if last := begun.last(); len(commits.batches) > 0 && last > commits.last()+1 {
		problems = append(problems, missingEntry(commits.name(last-1), "batch %d was begun, which needs it, and the commit log ends with %d", last, commits.last()))
	}
	return problems
}

// readLogs lists the logs and compares their names.
func (c *Checkpoint) readLogs(ctx context.Context) error {
	begun, err := listLog(ctx, c.fsys, path.Join(c.Dir, offsetsDir))
	if err != nil {
		return err
	}
	if c.commits, err = listLog(ctx, c.fsys, path.Join(c.Dir, commitsDir)); err != nil {
		return err
	}
	c.offsets = begun
	if c.commits.last() > begun.last() {
		if c.offsets, err = listLog(ctx, c.fsys, begun.dir); err != nil {
			return err
		}
	}
	c.Offsets, c.Commits = c.offsets.batches, c.commits.batches
	c.Problems = append(c.Problems, c.offsets.problems...)
	c.Problems = append(c.Problems, c.commits.problems...)
	c.Problems = append(c.Problems, c.offsets.gaps()...)
	c.Problems = append(c.Problems, c.commits.gaps()...)
	c.Problems = append(c.Problems, contradictions(begun, c.commits, c.offsets)...)
	return nil
}

// CheckLogs reads every entry of both logs, and compares each with the one before it. What is wrong are problems, beside
// those that Open has found: entries that are damaged, or of another version than is known here, or that contradict each
// other. An entry that is cleaned up meanwhile is none. The error is of what cannot be read at the moment.
func (c *Checkpoint) CheckLogs(ctx context.Context) (problems []error, err error) {
	known := map[string]bool{} // one problem of an entry is enough
	for _, problem := range c.Problems {
		var at *fs.PathError
		if errors.As(problem, &at) {
			known[at.Path] = true
		}
	}
	note := func(name string, err error) {
		if err != nil && !known[name] {
			known[name] = true
			problems = append(problems, core.PathError("read", name, err))
		}
	}
	offsets, err := readAll(ctx, c.fsys, c.offsets, ParseOffset, note)
	if err != nil {
		return nil, err
	}
	commits, err := readAll(ctx, c.fsys, c.commits, ParseCommit, note)
	if err != nil {
		return nil, err
	}
	var before *OffsetEntry // Spark 2.1 to 2.3 have no watermark in the commit log
	for _, batch := range c.Offsets {
		entry, there := offsets[batch]
		if !there {
			before = nil
			continue
		}
		if len(entry.Sources) == 0 {
			note(c.offsets.name(batch), fmt.Errorf("%w: offset log: no source has a line", core.ErrCorrupt))
		}
		note(c.offsets.name(batch), follows(before, entry))
		if commit, there := commits[batch-1]; there && commit.NextWatermarkMs > entry.WatermarkMs {
			note(c.offsets.name(batch), fmt.Errorf("%w: its watermark %d is below %d, which the batch before has committed", core.ErrCorrupt, entry.WatermarkMs, commit.NextWatermarkMs))
		}
		if commit, there := commits[batch]; there && commit.NextWatermarkMs > 0 && commit.NextWatermarkMs < entry.WatermarkMs {
			note(c.commits.name(batch), fmt.Errorf("%w: its watermark %d is below %d, with which the batch began", core.ErrCorrupt, commit.NextWatermarkMs, entry.WatermarkMs))
		}
		before = &entry
	}
	return problems, nil
}

// readAll reads the entries of a log that are files; note is told what is wrong.
func readAll[E any](ctx context.Context, fsys core.FileSystem, l batchLog, parse func([]byte) (E, error), note func(string, error)) (map[int64]E, error) {
	entries := map[int64]E{}
	for _, batch := range l.batches {
		if l.irregular[batch] {
			continue
		}
		entry, err := readEntry(ctx, fsys, l.dir, batch, parse)
		switch {
		case err == nil:
			entries[batch] = entry
		case errors.Is(err, core.ErrCorrupt) || errors.Is(err, core.ErrUnsupportedVersion):
			note(l.name(batch), err)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return entries, nil
}

// follows compares an entry of the offset log with the one before it. A query keeps its sources and what it is pinned to; a
// later Spark adds keys, and an earlier one leaves keys out. The number of partitions may be changed by a repartitioning.
func follows(before *OffsetEntry, entry OffsetEntry) error {
	if before == nil {
		return nil
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{core.ErrCorrupt}, args...)...)
	}
	if entry.WatermarkMs < before.WatermarkMs {
		return wrong("its watermark %d is below %d, that of the batch before", entry.WatermarkMs, before.WatermarkMs)
	}
	if len(entry.Sources) != len(before.Sources) {
		return wrong("it has %d lines of offsets, and the batch before has %d", len(entry.Sources), len(before.Sources))
	}
	for i, source := range entry.Sources {
		was, is := offsetForm(before.Sources[i]), offsetForm(source)
		if was != is && was != noOffset && is != noOffset {
			return wrong("the offset of source %d has another form than in the batch before", i)
		}
	}
	lost, added := "", ""
	for key, value := range before.Conf {
		is, there := entry.Conf[key]
		switch {
		case !there:
			lost = key
		case is != value && key != confPartitions:
			return wrong("it pins %s to %q, and the batch before to %q", key, is, value)
		}
	}
	for key := range entry.Conf {
		if _, there := before.Conf[key]; !there {
			added = key
		}
	}
	if lost != "" && added != "" {
		return wrong("it pins %q, and no longer %q as the batch before", added, lost)
	}
	return nil
}
