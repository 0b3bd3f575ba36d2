package ops

import (
	"context"
	"runtime/debug"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// DiffOptions of a comparison.
type DiffOptions struct {
	// Files is how many of the files that were added, and of those that were removed, are listed.
	Files   int
	PathMap PathMap
}

// Diff compares what the metadata of two checkpoints says.
func Diff(ctx context.Context, open core.Opener, from, to string, opts DiffOptions) (*report.Comparison, error) {
	// Two inventories are in memory; a tighter collector keeps what is besides small.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	before, inspectionBefore, err := inspect(ctx, open, from, opts.PathMap)
	defer before.Release()
	if err != nil {
		return nil, err
	}
	after, inspectionAfter, err := inspect(ctx, open, to, opts.PathMap)
	defer after.Release()
	if err != nil {
		return nil, err
	}
	c := report.Compare(inspectionBefore, inspectionAfter)
	err = eachFile(before, func(path string, bytes int64) {
		if size, kept := after.Lookup(path); kept {
			c.Files.Keep(bytes, size != bytes)
		} else {
			c.Differ(report.Removed, path, bytes, opts.Files)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, eachFile(after, func(path string, bytes int64) {
		if _, kept := before.Lookup(path); !kept {
			c.Differ(report.Added, path, bytes, opts.Files)
		}
	})
}

// eachFile visits the files of a checkpoint, each once; bytes are up to where they are needed.
func eachFile(s *Survey, visit func(path string, bytes int64)) error {
	for file, err := range s.All() {
		if err != nil {
			return s.located(err)
		}
		if file.First && !file.Directory {
			visit(strings.Clone(file.Path), max(file.Size, file.AtLeast))
		}
	}
	return nil
}

// inspect reads the metadata of a checkpoint and reports what it says. The survey is to be released in any case.
func inspect(ctx context.Context, open core.Opener, pointer string, pathMap PathMap) (*Survey, *report.Inspection, error) {
	inspector := report.NewInspector(report.InspectOptions{Where: pathMap.Map})
	s, err := TakeSurvey(ctx, open, pointer, metadata.InventoryOptions{Visit: inspector.Visitor(), Where: pathMap.Map})
	if err != nil {
		return s, nil, err
	}
	return s, inspector.Finish(s.Pointer, report.MetadataFile{Path: s.Metadata.Path, Bytes: s.Metadata.Size}, s.Inventory), nil
}
