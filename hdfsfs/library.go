package hdfsfs

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

// bytesPerChecksum is Hadoop's default, and what the library writes.
const bytesPerChecksum = 512

// library is a client on github.com/colinmarc/hdfs. It keeps a few connections to the NameNode (lanes), each with a library
// client of its own, which can do one call at a time; a lane that is in trouble is replaced, and ends when the last stream
// that it has opened is closed.
type library struct {
	settings    settings
	session     *kerberos.Session // nil without Kerberos
	callTimeout time.Duration
	dataTimeout time.Duration
	retryFor    time.Duration

	slots []*slot
	turn  atomic.Uint32

	ctx    context.Context //nolint:containedctx // ends with the client
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines that end lanes and streams

	mu        sync.Mutex
	closed    bool
	lanes     map[*lane]struct{}
	streams   map[time.Time]*stream
	unclaimed map[*dataConn]struct{} // connections that no stream has yet
	lastMark  int64

	leaked atomic.Int64
}

// slot is a place for a lane. Its mutex is held during a call.
type slot struct {
	mu   sync.Mutex
	lane *lane
}

var _ streamClient = (*library)(nil)

func newLibrary(s settings, session *kerberos.Session, o Options) *library {
	l := &library{
		settings: s, session: session, callTimeout: o.CallTimeout, dataTimeout: o.DataTimeout, retryFor: max(0, o.RetryFor),
		lanes: map[*lane]struct{}{}, streams: map[time.Time]*stream{}, unclaimed: map[*dataConn]struct{}{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for range o.Connections {
		l.slots = append(l.slots, &slot{})
	}
	return l
}

func (l *library) features() features { return features{} }

// counts implements client.
func (l *library) counts() Counts { return Counts{LeakedWriters: l.leaked.Load()} }

// close implements client.
func (l *library) close() {
	l.mu.Lock()
	l.closed = true
	var lanes []*lane
	for lane := range l.lanes {
		lanes = append(lanes, lane)
	}
	var streams []*stream
	for _, s := range l.streams {
		streams = append(streams, s)
	}
	unclaimed := l.unclaimed
	l.unclaimed = map[*dataConn]struct{}{}
	l.mu.Unlock()
	l.cancel()
	for c := range unclaimed {
		_ = c.Close()
	}
	for _, s := range streams {
		s.close()
	}
	for _, lane := range lanes {
		lane.end()
	}
}

// wait implements client.
func (l *library) wait() { l.work.Wait() }

// pick returns a slot with its lock: the first that is free, so that few connections are kept where few are needed.
func (l *library) pick() *slot {
	for _, s := range l.slots {
		if s.mu.TryLock() {
			return s
		}
	}
	s := l.slots[int(l.turn.Add(1))%len(l.slots)]
	s.mu.Lock()
	return s
}

// call does one call of the library, or several that belong together, on a lane that nobody else uses meanwhile except its
// open streams.
func (l *library) call(method string, noReplace bool, f func(lane *lane) error) error {
	s := l.pick()
	defer s.mu.Unlock()
	if s.lane != nil && s.lane.broken.Load() {
		s.lane.retire()
		s.lane = nil
	}
	if s.lane == nil {
		lane, err := l.newLane()
		if err != nil {
			return err
		}
		s.lane = lane
	}
	return s.lane.call(method, noReplace, f)
}

// streamOf returns the stream of a mark.
func (l *library) streamOf(mark time.Time) *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[mark]
}

// dialData connects to a DataNode. What is done before the library says for which stream it is has one deadline; connections
// which it has forgotten by then are closed here, because it does not do that itself.
func (l *library) dialData(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if err := conn.SetDeadline(now.Add(l.callTimeout)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	c := &dataConn{Conn: conn, owner: l, made: now, reader: bufio.NewReaderSize(conn, 64<<10)}
	var forgotten []*dataConn
	l.mu.Lock()
	for old := range l.unclaimed {
		if now.Sub(old.made) > l.callTimeout {
			forgotten = append(forgotten, old)
		}
	}
	closed := l.closed
	if !closed {
		l.unclaimed[c] = struct{}{}
	}
	l.mu.Unlock()
	for _, old := range forgotten {
		_ = old.Close()
	}
	if closed {
		_ = conn.Close()
		return nil, fs.ErrClosed
	}
	return c, nil
}

func (l *library) claimed(c *dataConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unclaimed, c)
}

// dial gives up when the client is closed.
func (l *library) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.callTimeout)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// affirm gives the lane a fresh ticket.
func (l *library) affirm(ctx context.Context, lane *lane, address string) error {
	if l.session == nil {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if _, err := kerberos.ServicePrincipal(l.settings.principal, host); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.callTimeout)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	if err := l.session.AffirmLogin(ctx); err != nil {
		return err
	}
	*lane.login = *l.session.Client()
	return nil
}

// isMapped reports whether the library has understood an answer.
func isMapped(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid)
}

// bare takes the path off: that which the caller used is put on later.
func bare(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
