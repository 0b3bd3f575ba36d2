package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strconv"

	"github.com/colinmarc/hdfs/v2"
)

// inodePath is a name that the NameNode understands for whatever file has that id, and for no other, wherever it is now.
func inodePath(id uint64) string { return "/.reserved/.inodes/" + strconv.FormatUint(id, 10) }

// create implements client.
func (l *library) create(_ context.Context, name string, spec createSpec) (clientWriter, error) {
	w := &libraryWriter{}
	var file *hdfs.FileWriter
	err := l.call(methodCreate, false, func(n *lane) error {
		w.replication, w.blockSize = spec.replication, spec.blockSize
		if w.replication == 0 {
			w.replication = n.repl
		}
		if w.blockSize == 0 {
			w.blockSize = n.block
		}
		var err error
		if file, err = n.client.CreateFile(name, w.replication, w.blockSize, fs.FileMode(spec.perm)); err != nil {
			return err
		}
		w.lane, w.file = n, file
		n.hold()
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.stream = l.newStream()
	_ = w.file.SetDeadline(w.stream.mark) // there is no connection yet that could refuse it
	id, err := fileID(file)
	if err == nil {
		w.state, err = l.stat(l.ctx, inodePath(id))
	}
	if err != nil {
		removed := false
		if id != 0 {
			_, removeErr := l.remove(l.ctx, inodePath(id), false)
			removed = removeErr == nil
		}
		w.discard(removed)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the file was removed at once: %w", err)
		}
		return nil, err
	}
	return w, nil
}

// fileID returns the inode of a file that is written: the library keeps it to itself.
func fileID(file *hdfs.FileWriter) (uint64, error) {
	field := reflect.ValueOf(file).Elem().FieldByName("fileId")
	if field.Kind() != reflect.Pointer || field.IsNil() || field.Elem().Kind() != reflect.Uint64 {
		return 0, fmt.Errorf("%w: the NameNode has not told the id of the file", errors.ErrUnsupported)
	}
	return field.Elem().Uint(), nil
}

// stat implements client.
func (l *library) stat(_ context.Context, name string) (status, error) {
	var s status
	err := l.call(methodStat, false, func(n *lane) error {
		info, err := n.client.Stat(name)
		if err != nil {
			return err
		}
		s, err = statusOf(info)
		return err
	})
	return s, err
}

// Types of the NameNode's file status.
const (
	typeDir     = "IS_DIR"
	typeSymlink = "IS_SYMLINK"
)

func statusOf(info fs.FileInfo) (status, error) {
	p, ok := info.Sys().(*hdfs.FileStatus)
	if !ok {
		return status{}, fmt.Errorf("%w: a file status of type %T", errors.ErrUnsupported, info.Sys())
	}
	return status{
		id: p.GetFileId(), name: info.Name(), size: info.Size(), modified: info.ModTime(),
		dir: p.GetFileType().String() == typeDir, symlink: p.GetFileType().String() == typeSymlink,
		perm: p.GetPermission().GetPerm(), replication: int(p.GetBlockReplication()),
		erasure: p.GetEcPolicy() != nil, encrypted: p.GetFileEncryptionInfo() != nil,
	}, nil
}

// mkdirs implements client.
func (l *library) mkdirs(_ context.Context, name string, perm uint32) error {
	return l.call(methodMkdirs, false, func(n *lane) error { return n.client.MkdirAll(name, fs.FileMode(perm)) })
}

// rename implements client.
func (l *library) rename(_ context.Context, oldname, newname string, replace bool) error {
	return l.call(methodRename, !replace, func(n *lane) error { return n.client.Rename(oldname, newname) })
}

// remove implements client. The library takes "false" for success.
func (l *library) remove(_ context.Context, name string, recursive bool) (bool, error) {
	removed := true
	err := l.call(methodDelete, false, func(n *lane) error {
		var err error
		if recursive {
			err = n.client.RemoveAll(name)
		} else {
			err = n.client.Remove(name)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		switch a := n.noted[methodDelete]; {
		case a != nil && a.status == 0:
			removed = boolResult(a.body)
		case err == nil && !n.wrapped.Load():
			removed = false // RemoveAll has found nothing
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return removed && err == nil, err
}

// open implements streamClient. The library asks for the places of blocks by the name under which a file was opened, so that is
// one which no other file can take.
func (l *library) open(_ context.Context, file status) (clientReader, error) {
	r := &libraryReader{}
	err := l.call(methodStat, false, func(n *lane) error {
		opened, err := n.client.Open(inodePath(file.id))
		if err != nil {
			return err
		}
		r.lane, r.file = n, opened
		n.hold()
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.stream = l.newStream()
	_ = r.file.SetDeadline(r.stream.mark) // there is no connection yet that could refuse it
	r.piece = max(1, min(bytesPerChecksum, r.lane.chunk)-1)
	r.blockSize = int64(reflectBlockSize(r.file))
	return r, nil
}

func reflectBlockSize(file *hdfs.FileReader) uint64 {
	if p, ok := file.Stat().Sys().(*hdfs.FileStatus); ok {
		return p.GetBlocksize()
	}
	return 0
}

// list implements streamClient.
func (l *library) list(_ context.Context, dir status) (clientListing, error) {
	d := &libraryListing{owner: l}
	err := l.call(methodStat, false, func(n *lane) error {
		opened, err := n.client.Open(inodePath(dir.id))
		if err != nil {
			return err
		}
		d.lane, d.dir = n, opened
		n.hold()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// pageSize is dfs.ls.limit of Hadoop: one call a page.
const pageSize = 1000

type libraryListing struct {
	owner *library
	lane  *lane
	dir   *hdfs.FileReader
}

// next implements clientListing.
func (d *libraryListing) next(context.Context) ([]status, bool, error) {
	slot := d.owner.slotOf(d.lane)
	defer slot.mu.Unlock()
	var page []status
	more := false
	err := d.lane.call(methodListing, false, func(*lane) error {
		infos, err := d.dir.Readdir(pageSize)
		if errors.Is(err, io.EOF) {
			if a := d.lane.answerTo(methodListing); a != nil || d.lane.wrapped.Load() {
				return nil // the library's way to say that there is nothing; a broken connection would have had no answer
			}
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		more = len(infos) == pageSize
		for _, info := range infos {
			s, err := statusOf(info)
			if err != nil {
				return err
			}
			page = append(page, s)
		}
		return nil
	})
	return page, more, err
}

func (d *libraryListing) close() { d.lane.release() }

// slotOf returns, with its lock, the slot that a lane is in; a lane that is in none any more gets one of its own.
func (l *library) slotOf(n *lane) *slot {
	for _, s := range l.slots {
		s.mu.Lock()
		if s.lane == n {
			return s
		}
		s.mu.Unlock()
	}
	s := &slot{lane: n}
	s.mu.Lock()
	return s
}
