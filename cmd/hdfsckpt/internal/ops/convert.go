package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// ConvertOptions of a conversion.
type ConvertOptions struct {
	// Version of the format to write.
	Version int
	// AllowLoss writes although the version cannot hold everything.
	AllowLoss bool
	// KeepRelative leaves relative handles as they are: their files will be put beside the target.
	KeepRelative bool
	// File: the target is the name of the file, not of the directory for it.
	File    bool
	PathMap PathMap
}

// Convert reads the metadata of a checkpoint and writes it in another version to a target that is not there yet. State files are not
// touched. If something would be lost and may not be, nothing is written: the result then comes with the error.
func Convert(ctx context.Context, open core.Opener, pointer, target string, opts ConvertOptions) (*report.Conversion, error) {
	c, _, err := read(ctx, open, pointer)
	if err != nil {
		return nil, err
	}
	if !opts.File {
		target = strings.TrimSuffix(target, "/") + "/" + core.MetadataName
	}
	fsys, name, err := open(ctx, target)
	if err != nil {
		return nil, err
	}
	result := &report.Conversion{
		Pointer: c.Pointer, Target: core.Qualify(fsys.URI(), name), FromVersion: c.Content.Version, ToVersion: opts.Version,
		Losses: report.NewLosses(metadata.Losses(c.Content, opts.Version, c.Content.Footer != nil)),
	}
	relocate(c, result, opts, core.Qualify(fsys.URI(), path.Dir(name)))
	if len(result.Losses) > 0 && !opts.AllowLoss {
		return result, refuseLoss(result)
	}
	result.Bytes, err = writeMetadata(ctx, fsys, name, c.Content, metadata.WriteOptions{Version: opts.Version, Footer: c.Content.Footer})
	result.Written = err == nil
	return result, err
}

func refuseLoss(r *report.Conversion) error {
	return &report.Problem{
		Kind: report.Refused, Path: r.Target,
		Message: fmt.Sprintf("version %d cannot hold all of %s; nothing was written", r.ToVersion, r.Pointer),
		Hint:    "if you can do without what is lost, use --allow-loss",
	}
}

// relocate changes the paths of handles as asked, and counts.
func relocate(c *Checkpoint, result *report.Conversion, opts ConvertOptions, dir string) {
	move := func(recorded string) string {
		moved := opts.PathMap.MapRecorded(recorded)
		if moved != recorded {
			result.Mapped++
		}
		return moved
	}
	absolute := !opts.KeepRelative && dir != c.Pointer
	c.Content.Relocate(metadata.Relocation{Directory: move, Stream: func(h core.StreamHandle) core.StreamHandle {
		switch h := h.(type) {
		case *core.FileHandle:
			own := *h
			own.Path = move(h.Path)
			return &own
		case *metadata.SegmentHandle:
			own := *h
			own.Path = move(h.Path)
			return &own
		case *core.RelativeFileHandle:
			if absolute {
				result.MadeAbsolute++
				return &core.FileHandle{Path: h.Path(), Size: h.Size, Checksums: h.Checksums}
			}
		}
		return h
	}})
	if opts.Version >= 6 {
		return
	}
	for i := range c.Content.Operators {
		for _, subtask := range c.Content.Operators[i].Subtasks {
			if s := subtask.State; s != nil {
				result.Unmerged += merged(s.InputChannels) + merged(s.ResultSubpartitions)
			}
		}
	}
}

func merged(list []metadata.ChannelHandle) int {
	n := 0
	for i := range list {
		if list[i].Merged {
			n++
		}
	}
	return n
}

// writeMetadata publishes a metadata file in one step, under a name that is free.
func writeMetadata(ctx context.Context, fsys core.FileSystem, name string, c *metadata.Checkpoint, opts metadata.WriteOptions) (int64, error) {
	switch _, err := fsys.Stat(ctx, name); {
	case err == nil:
		return 0, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	if err := fsys.MkdirAll(ctx, path.Dir(name)); err != nil {
		return 0, err
	}
	temp, err := core.NewMetadataTempName()
	if err != nil {
		return 0, core.PathError("create", name, err)
	}
	file, err := core.CreateAtomic(ctx, fsys, core.AtomicOptions{
		Temp: path.Join(path.Dir(name), temp), Final: name, Mode: core.RenameNoReplace,
	})
	if err != nil {
		return 0, err
	}
	if err := metadata.Write(file, c, opts); err != nil {
		var at *fs.PathError
		if !errors.As(err, &at) {
			err = core.PathError("write", name, err)
		}
		return 0, errors.Join(err, file.Abort())
	}
	size := file.Size()
	return size, file.Commit()
}
