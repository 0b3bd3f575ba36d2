package fstest

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"testing"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func renameFaults() []fault {
	return []fault{
		{
			what: "Rename does nothing",
			breaks: []string{
				"Rename/RenameNoReplace moves*", "Rename/RenameReplace moves*", "Rename/A name is free again after Rename",
				"Rename/RenameReplace replaces a file",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.rename = func(context.Context, string, string, core.RenameMode) error { return nil }
			},
		},
		{
			what: "RenameNoReplace replaces",
			breaks: []string{
				"Refusal/RenameNoReplace of a file over a file is ErrExist",
				"RenameRace/RenameNoReplace of 16 files to one name has exactly one winner",
				"RenameRace/RenameNoReplace and Create of one name have exactly one winner",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.rename = func(ctx context.Context, oldname, newname string, _ core.RenameMode) error {
					return h.FileSystem.Rename(ctx, oldname, newname, core.RenameReplace)
				}
			},
		},
		{
			what: "RenameNoReplace looks whether the name is taken and then replaces",
			breaks: []string{
				"RenameRace/RenameNoReplace of 16 files to one name has exactly one winner",
				"RenameRace/RenameNoReplace of 16 directories to one name has exactly one winner",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.rename = func(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
					if mode != core.RenameNoReplace {
						return h.FileSystem.Rename(ctx, oldname, newname, mode)
					}
					if _, err := h.FileSystem.Stat(ctx, newname); err == nil {
						return core.RenameError(oldname, newname, fs.ErrExist)
					}
					runtime.Gosched()
					if info, err := h.FileSystem.Stat(ctx, oldname); err == nil && info.IsDir() {
						if err := h.FileSystem.RemoveAll(ctx, newname); err != nil {
							return err
						}
					}
					return h.FileSystem.Rename(ctx, oldname, newname, core.RenameReplace)
				}
			},
		},
		{
			what: "Rename is a copy",
			breaks: []string{
				"RenameRace/Rename of one file to 16 names has exactly one winner",
				"RenameRace/Rename of one directory to 16 names has exactly one winner",
			},
			inject: func(_ testing.TB, h *hooks) {
				h.rename = func(ctx context.Context, oldname, newname string, _ core.RenameMode) error {
					if _, err := h.FileSystem.Stat(ctx, oldname); err != nil {
						return core.RenameError(oldname, newname, fs.ErrNotExist)
					}
					runtime.Gosched()
					if err := copyTree(ctx, h.FileSystem, oldname, newname); err != nil {
						return core.RenameError(oldname, newname, err)
					}
					runtime.Gosched()
					return h.FileSystem.RemoveAll(ctx, oldname)
				}
			},
		},
		{
			what:   "RenameReplace is Remove and Rename",
			breaks: []string{"RenameRace/RenameReplace under readers*", "Rename/RenameReplace of a file to itself does nothing"},
			inject: func(_ testing.TB, h *hooks) {
				h.rename = func(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
					if mode == core.RenameReplace {
						_ = h.FileSystem.Remove(ctx, newname)
						runtime.Gosched()
					}
					return h.FileSystem.Rename(ctx, oldname, newname, mode)
				}
			},
		},
		{
			what:   "a failed Rename names the new path",
			breaks: []string{"Rename/A failed Rename names the old path and mentions the new one"},
			inject: func(_ testing.TB, h *hooks) {
				h.rename = func(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
					if err := h.FileSystem.Rename(ctx, oldname, newname, mode); err != nil {
						return &fs.PathError{Op: "rename", Path: newname, Err: errors.Unwrap(err)}
					}
					return nil
				}
			},
		},
		{
			what:   "a failed Rename does not mention the new path",
			breaks: []string{"Rename/A failed Rename names the old path and mentions the new one", "Name/A name with a colon*"},
			inject: func(_ testing.TB, h *hooks) {
				h.rename = func(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
					err := h.FileSystem.Rename(ctx, oldname, newname, mode)
					for _, sentinel := range []error{fs.ErrExist, fs.ErrNotExist, fs.ErrInvalid} {
						if errors.Is(err, sentinel) {
							return core.PathError("rename", oldname, sentinel)
						}
					}
					return err
				}
			},
		},
		{
			what:   "a name that begins with another counts as below it",
			breaks: []string{"Rename/A directory is moved below a sibling whose name it begins with"},
			inject: func(_ testing.TB, h *hooks) {
				h.rename = func(ctx context.Context, oldname, newname string, mode core.RenameMode) error {
					if oldname != newname && strings.HasPrefix(newname, oldname) {
						return core.RenameError(oldname, newname, fs.ErrInvalid)
					}
					return h.FileSystem.Rename(ctx, oldname, newname, mode)
				}
			},
		},
	}
}

// copyTree copies without care for what happens meanwhile.
func copyTree(ctx context.Context, fsys core.FileSystem, from, to string) error {
	infos, err := collect(ctx, fsys, from)
	if errors.Is(err, fs.ErrInvalid) {
		data, err := readFile(ctx, fsys, from)
		if err != nil {
			return err
		}
		return writeFile(ctx, fsys, to, data, core.CreateOptions{})
	}
	if err != nil {
		return err
	}
	if err := fsys.MkdirAll(ctx, to); err != nil {
		return err
	}
	for _, info := range infos {
		if err := copyTree(ctx, fsys, path.Join(from, info.Name), path.Join(to, info.Name)); err != nil {
			return err
		}
	}
	return nil
}
