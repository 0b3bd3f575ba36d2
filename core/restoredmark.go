package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// What a job may do with the checkpoint that it was restored from must be known after a crash too, until that is done. It stands
// in the job directory:
//
//	.restored.<uuid>    {"pointer": "hdfs://ns1/…", "claimed": true}
//
// Claimed: the checkpoint belongs to the job from now on and is to be deleted when it is not retained any more. Not claimed: it
// belongs to somebody else; nothing of it may ever be deleted. The mark is written in the claim's directory and renamed, so that
// a fenced owner cannot make one.

// RestoredMark says what a job may do with a checkpoint that it was restored from.
type RestoredMark struct {
	// Pointer is the qualified directory of the checkpoint, or its metadata file.
	Pointer string `json:"pointer"`
	// Claimed: the job deletes the checkpoint. Otherwise nothing of it is ever deleted.
	Claimed bool `json:"claimed"`

	name string
}

// maxRestoredMark is the largest mark in bytes that is read; a path is much shorter.
const maxRestoredMark = 1 << 20

// RestoredMarks returns the marks of the job directory, in the order of their names. One that cannot be read fails all: what may be
// deleted depends on it.
func (s *Storage) RestoredMarks(ctx context.Context) ([]RestoredMark, error) {
	var marks []RestoredMark
	for info, err := range s.fsys.List(ctx, s.JobDir()) {
		if err != nil {
			return nil, err
		}
		if !isRestoredMarkName(info.Name) || info.IsDir() {
			continue
		}
		mark := RestoredMark{name: join(s.JobDir(), info.Name)}
		data, err := readWhole(ctx, s.fsys, mark.name, maxRestoredMark)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &mark); err != nil || mark.Pointer == "" {
			return nil, PathError("read", mark.name, fmt.Errorf(
				"%w: it says nothing about a restored checkpoint; remove it if no checkpoint that the job was restored from needs protection", ErrCorrupt))
		}
		marks = append(marks, mark)
	}
	return marks, nil
}

// MarkRestored makes a mark, durably. The error is ErrFenced if the claim is lost.
func (o *Owner) MarkRestored(ctx context.Context, mark RestoredMark) error {
	id, err := o.storage.opts.NewUUID()
	if err != nil {
		return PathError("mark", mark.Pointer, err)
	}
	data, err := json.Marshal(mark)
	if err != nil {
		return PathError("mark", mark.Pointer, err)
	}
	name := restoredMarkName(id)
	temp, err := o.trashName(name[1:])
	if err != nil {
		return err
	}
	file, err := CreateAtomic(ctx, o.storage.fsys, AtomicOptions{
		Temp: temp, Final: join(o.storage.JobDir(), name), Mode: RenameNoReplace, Create: o.storage.createOptions(),
	})
	if err != nil {
		return o.explain(ctx, err)
	}
	if _, err = file.Write(append(data, '\n')); err == nil {
		err = file.Commit()
	}
	if err != nil {
		return o.explain(ctx, errors.Join(err, file.Abort()))
	}
	return nil
}

// ForgetRestored removes a mark that RestoredMarks has returned. A mark that is gone is success.
func (o *Owner) ForgetRestored(ctx context.Context, mark RestoredMark) error {
	if mark.name == "" {
		return fmt.Errorf("%w: the mark of %s was not read from the job directory", fs.ErrInvalid, mark.Pointer)
	}
	if err := o.Check(ctx); err != nil {
		return err
	}
	return removeFile(ctx, o.storage.fsys, mark.name)
}
