package sparkckpt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Names in a checkpoint directory.
const (
	stateDir     = "state"
	offsetsDir   = "offsets"
	commitsDir   = "commits"
	metadataFile = "metadata"
)

// Checkpoint is the directory of a query as it was when it was opened. It is safe for concurrent use.
type Checkpoint struct {
	fsys core.FileSystem
	// Dir is its name on the file system.
	Dir string
	// QueryID is "" without metadata.
	QueryID string
	// Offsets and Commits are the batches in the logs, ascending.
	Offsets, Commits []int64
	// Pins are those of the newest entry of the offset log that can be read.
	Pins Pins
	// Problems are what is wrong with the logs by their names, their newest entries, and metadata that cannot be read. They are
	// *fs.PathError; an entry that is missing is also fs.ErrNotExist. CheckLogs reads the other entries.
	Problems []error

	offsets, commits batchLog
}

// Open looks at a checkpoint directory and reads its logs. What is damaged in them is left to Problems; what cannot be read
// at the moment is an error. A directory that has no state is fs.ErrNotExist.
func Open(ctx context.Context, fsys core.FileSystem, dir string) (*Checkpoint, error) {
	c := &Checkpoint{fsys: fsys, Dir: dir, Pins: Pins{Batch: -1}}
	info, err := fsys.Stat(ctx, c.StateRoot())
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, core.PathError("open", c.StateRoot(), fmt.Errorf("%w: it is not a directory", fs.ErrInvalid))
	}
	if err := c.readID(ctx); err != nil {
		return nil, err
	}
	if err := c.readLogs(ctx); err != nil {
		return nil, err
	}
	if err := c.readPins(ctx); err != nil {
		return nil, err
	}
	// Spark has the commit log since 2.2, and pins a configuration since 2.3.
	if last := c.LastOffset(); last > 0 && len(c.Commits) == 0 && len(c.commits.problems) == 0 && c.Pins.Conf != nil {
		c.Problems = append(c.Problems, missingEntry(c.commits.name(last-1), "batch %d was begun, which needs it, and the commit log is empty", last))
	}
	if last := c.LastCommit(); last >= 0 && !c.commits.irregular[last] {
		if _, err := readEntry(ctx, fsys, c.commits.dir, last, ParseCommit); err != nil && !c.tolerate(err) {
			return nil, err
		}
	}
	return c, nil
}

// readPins reads the newest entry of the offset log that can be read.
func (c *Checkpoint) readPins(ctx context.Context) error {
	for _, batch := range slices.Backward(c.Offsets) {
		if c.offsets.irregular[batch] {
			continue
		}
		entry, err := readEntry(ctx, c.fsys, c.offsets.dir, batch, ParseOffset)
		if err == nil {
			c.Pins = Pins{Batch: batch, Conf: entry.Conf}
			return nil
		}
		if !c.tolerate(err) {
			return err
		}
	}
	return nil
}

// StateRoot is the directory of all operators.
func (c *Checkpoint) StateRoot() string { return path.Join(c.Dir, stateDir) }

// tolerate keeps an error about damage, or about a file that was cleaned up meanwhile, among the problems.
func (c *Checkpoint) tolerate(err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if !errors.Is(err, core.ErrCorrupt) && !errors.Is(err, core.ErrUnsupportedVersion) {
		return false
	}
	c.Problems = append(c.Problems, err)
	return true
}

func (c *Checkpoint) readID(ctx context.Context) error {
	name := path.Join(c.Dir, metadataFile)
	data, err := readText(ctx, c.fsys, name)
	if err == nil {
		var form struct {
			ID string `json:"id"`
		}
		if jsonErr := json.Unmarshal(data, &form); jsonErr != nil {
			err = core.PathError("read", name, fmt.Errorf("%w: %w", core.ErrCorrupt, jsonErr))
		}
		c.QueryID = form.ID
	}
	if err != nil && !c.tolerate(err) {
		return err
	}
	return nil
}

// LastCommit is the newest batch that is done, -1 if there is none.
func (c *Checkpoint) LastCommit() int64 {
	if len(c.Commits) == 0 {
		return -1
	}
	return c.Commits[len(c.Commits)-1]
}

// LastOffset is the newest batch that was begun, -1 if there is none.
func (c *Checkpoint) LastOffset() int64 {
	if len(c.Offsets) == 0 {
		return -1
	}
	return c.Offsets[len(c.Offsets)-1]
}

// CommittedVersion is the version of every store that the newest done batch committed, and whether the commit log tells.
// Files of higher versions are of a batch that was not finished: the query will write them again. Before Spark 2.2 there was
// no commit log.
func (c *Checkpoint) CommittedVersion() (version int64, known bool) {
	return c.LastCommit() + 1, len(c.Commits) > 0
}

// UniqueIDs returns the ids of the state of a store's partition that the commit of a batch names, one for each store of the
// operator, in an order of Spark's. nil says that the batch names none, as in checkpoint format 1, or is not in the log.
func (c *Checkpoint) UniqueIDs(ctx context.Context, batch, operator, partition int64) ([]string, error) {
	if _, found := slices.BinarySearch(c.Commits, batch); !found {
		return nil, nil
	}
	entry, err := readEntry(ctx, c.fsys, path.Join(c.Dir, commitsDir), batch, ParseCommit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if ids := entry.UniqueIDs[operator]; partition < int64(len(ids)) {
		return ids[partition], nil
	}
	return nil, nil
}
