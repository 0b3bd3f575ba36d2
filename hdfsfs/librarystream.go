package hdfsfs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// libraryFile is *hdfs.FileWriter.
type libraryFile interface {
	io.WriteCloser
	SetDeadline(time.Time) error
}

// libraryWriter is a file that is written.
type libraryWriter struct {
	lane        *lane
	file        libraryFile
	stream      *stream
	state       status
	replication int
	blockSize   int64
	written     int64
	ended       bool
	broken      bool // by a DataNode: then a goroutine of the library stays
}

func (w *libraryWriter) status() status { return w.state }

func (w *libraryWriter) interrupt() { w.stream.interrupt() }

func (w *libraryWriter) sync() error { return errors.ErrUnsupported }

// write implements clientWriter.
func (w *libraryWriter) write(p []byte) error {
	for len(p) > 0 {
		piece := p[:min(int64(len(p)), w.blockSize-w.written%w.blockSize)]
		if err := w.lane.mayDial(w.written%w.blockSize == 0, func() error {
			_, err := w.file.Write(piece)
			return err
		}); err != nil {
			return w.judge(err)
		}
		w.written += int64(len(piece))
		p = p[len(piece):]
	}
	return nil
}

// mayDial does what may make a connection to a DataNode. With Kerberos the library fetches a key for that, and keeps it in
// a field that it does not guard.
func (n *lane) mayDial(may bool, f func() error) error {
	if may && n.owner.session != nil {
		n.dials.Lock()
		defer n.dials.Unlock()
	}
	return f()
}

// judge turns what the library returns from a stream into an error of a client.
func (w *libraryWriter) judge(err error) error {
	if err == nil {
		return nil
	}
	if remote := asRemote("write", err, nil); remote != nil {
		return remote
	}
	if isMapped(err) {
		return bare(err)
	}
	w.broken = true
	return fmt.Errorf("%w: a DataNode or the NameNode has failed while the file was written: %w", core.ErrUnavailable, bare(err))
}

// finish implements clientWriter. The library's Close may be called again only as long as it has done nothing wrong: after
// any other error it would commit what DataNodes have not acknowledged.
func (w *libraryWriter) finish(limit time.Duration) (int, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := w.file.Close()
		if err == nil {
			break
		}
		if !errors.Is(err, hdfs.ErrReplicating) {
			w.ended = true
			return 0, w.judge(err)
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
			continue
		case <-late.C:
			err = fmt.Errorf("%w: the NameNode has not heard of enough replicas within %v", core.ErrUnavailable, limit)
		case <-w.stream.done:
			err = net.ErrClosed
		}
		again.Stop()
		w.ended = true
		return 0, err
	}
	w.ended = true
	w.stream.close()
	w.lane.release()
	if replicas := w.stream.shortest(); replicas > 0 {
		return replicas, nil
	}
	if w.written > 0 {
		return 0, fmt.Errorf("%w: it is not known to how many DataNodes the file was sent", core.ErrUnavailable)
	}
	return math.MaxInt, nil
}

// discard implements clientWriter. To end its goroutines the library has to be told to finish, which must not commit the
// file: so that is done only if it is gone. What has failed before leaves a goroutine behind, for ever.
func (w *libraryWriter) discard(removed bool) {
	switch {
	case w.ended:
	case removed:
		_ = w.judge(w.file.Close()) // it fails, because the file is gone
	default:
		w.broken = true
	}
	w.ended = true
	if w.broken && w.stream.started() {
		w.lane.owner.leaked.Add(1)
	}
	w.stream.close()
	w.lane.release()
}

// libraryReader is a file that is read, by one goroutine at a time.
type libraryReader struct {
	lane      *lane
	file      *hdfs.FileReader
	stream    *stream
	piece     int // less than a chunk: then the library does not return what has the wrong checksum
	blockSize int64
	at        atomic.Int64
	fresh     bool // the next read goes on with a connection that is there
	closing   sync.Once
}

func (r *libraryReader) position() int64 { return r.at.Load() }

// readAt implements clientReader.
func (r *libraryReader) readAt(p []byte, off int64) (int, error) {
	if r.at.Load() != off {
		if _, err := r.file.Seek(off, io.SeekStart); err != nil {
			return 0, r.judge(err)
		}
		r.at.Store(off)
		r.fresh = false
	}
	n := 0
	for n < len(p) {
		piece := p[n:min(n+r.piece, len(p))]
		var k int
		err := r.lane.mayDial(!r.fresh || r.blockSize > 0 && r.at.Load()%r.blockSize == 0, func() error {
			var err error
			k, err = r.file.Read(piece)
			return err
		})
		n += k
		r.at.Add(int64(k))
		r.fresh = true
		if err == nil && k == 0 {
			err = io.ErrNoProgress
		}
		if err != nil {
			return n, r.judge(err)
		}
	}
	return n, nil
}

func (r *libraryReader) judge(err error) error {
	if remote := asRemote("read", err, nil); remote != nil {
		return remote
	}
	switch {
	case isMapped(err):
		return bare(err)
	case strings.Contains(err.Error(), "invalid checksum"):
		return errChecksum
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the file ends before its length at open: %w", core.ErrCorrupt, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%w: no DataNode has given the bytes: %w", core.ErrUnavailable, bare(err))
}

// close implements clientReader. The library's own Close is not needed: all that it does is to close its connection.
func (r *libraryReader) close() {
	r.closing.Do(func() {
		r.stream.close()
		r.lane.release()
	})
}
