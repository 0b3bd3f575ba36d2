package hdfsfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/colinmarc/hdfs/v2"
	krb "github.com/jcmturner/gokrb5/v8/client"
)

// The methods of the NameNode that are looked at.
const (
	methodStat    = "getFileInfo"
	methodCreate  = "create"
	methodMkdirs  = "mkdirs"
	methodRename  = "rename2"
	methodDelete  = "delete"
	methodListing = "getListing"
	methodLogin   = "getServerDefaults"
)

// attempts is how often each address stands in the library's list. It puts an entry on which something failed aside for 5 s,
// so that a single one would make every call fail for as long.
const attempts = 16

// aside is how long an address to which a connection could not be made in time is not tried again, whatever the number of its
// entries.
const aside = 5 * time.Second

// lane is one client of the library with its connection.
type lane struct {
	owner    *library
	client   *hdfs.Client
	login    *krb.Client // the library's own copy, which is filled anew before each connection
	clientID [16]byte
	chunk    int // bytes per checksum of new files, as the NameNode says
	repl     int
	block    int64

	dials sync.Mutex // held while the library may fetch a key for DataNodes, which it does without one

	broken  atomic.Bool
	closing atomic.Bool
	wrapped atomic.Bool // answers are signed or encrypted, and cannot be looked at

	mu      sync.Mutex
	conn    *nameConn
	ended   bool
	retired bool
	streams int
	replace bool // what a rename may do
	began   time.Time
	current int32
	method  string                // that is asked for
	noted   map[string]*rpcAnswer // the last answer by method
	inDoubt bool
	dead    map[string]time.Time // addresses that are put aside, since when
	refusal *remoteError         // of the server, to the connection
	dialing error                // why the last connection could not be made
	cause   error                // of a lost answer
}

// newLane connects. The error is a connError or a remoteError.
func (l *library) newLane() (*lane, error) {
	n := &lane{owner: l, replace: true, noted: map[string]*rpcAnswer{}, dead: map[string]time.Time{}}
	_, _ = rand.Read(n.clientID[:]) // documented never to fail
	o := l.settings.library
	for range attempts {
		o.Addresses = append(o.Addresses, l.settings.addresses...)
	}
	o.User = l.settings.user
	o.NamenodeDialFunc, o.DatanodeDialFunc = n.dial, l.dialData
	if l.session != nil {
		if err := l.session.AffirmLogin(l.ctx); err != nil {
			return nil, &connError{err: err}
		}
		login := *l.session.Client()
		n.login = &login
		o.KerberosClient, o.KerberosServicePrincipleName = n.login, l.settings.principal
	}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.lanes[n] = struct{}{} // so that closing breaks what hangs from here on
	}
	l.mu.Unlock()
	if closed {
		return nil, &connError{err: net.ErrClosed}
	}
	err := n.call(methodLogin, false, func(*lane) error { return n.connectAs(o) })
	if err != nil {
		n.end()
		return nil, err
	}
	return n, nil
}

// connectAs makes the library's client. The defaults are asked for here, once, because the library does not guard what it
// keeps of them.
func (n *lane) connectAs(o hdfs.ClientOptions) error {
	client, err := hdfs.NewClient(o)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.client = client
	n.mu.Unlock()
	d, err := client.ServerDefaults()
	n.chunk, n.repl, n.block = d.BytesPerChecksum, d.Replication, d.BlockSize
	return err
}

// call does f, whose calls are the only ones of their methods on this lane.
func (n *lane) call(method string, noReplace bool, f func(*lane) error) error {
	n.mu.Lock()
	n.noted, n.method = map[string]*rpcAnswer{}, method
	n.inDoubt, n.refusal, n.dialing, n.cause = false, nil, nil, nil
	n.replace = !noReplace
	n.mu.Unlock()
	return n.judge(method, f(n))
}

func (n *lane) mustNotReplace() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.replace
}

// dial connects to a NameNode.
func (n *lane) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := n.connect(ctx, network, address)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && n.ended {
		_ = conn.Close()
		err = net.ErrClosed
	}
	if n.dialing = err; err != nil {
		return nil, err
	}
	c := &nameConn{Conn: conn, lane: n}
	n.conn = c
	return c, nil
}

func (n *lane) connect(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	since, dead := n.dead[address]
	n.mu.Unlock()
	if dead && time.Since(since) < aside {
		return nil, fmt.Errorf("dial tcp %s: %w", address, os.ErrDeadlineExceeded)
	}
	begin := time.Now()
	err := n.owner.affirm(ctx, n, address)
	var conn net.Conn
	if err == nil {
		conn, err = n.owner.dial(ctx, network, address)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.dead, address)
	if err != nil && time.Since(begin) > n.owner.callTimeout/2 {
		n.dead[address] = time.Now()
	}
	return conn, err
}

func (n *lane) forget(c *nameConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn == c {
		n.conn = nil
	}
}

// sent notes that a request is on its way.
func (n *lane) sent(call int32, method string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if call != n.current {
		n.current, n.began = call, time.Now()
	}
	delete(n.noted, method)
}

// answered notes an answer; nil is one that cannot be read here.
func (n *lane) answered(method string, a *rpcAnswer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ours(method) {
		n.noted[method] = a
		n.inDoubt = false
	}
}

// lost notes that an answer did not come, and reports whether the request shall be sent again.
func (n *lane) lost(call int32, method string, err error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cause = err
	if method == n.method {
		n.inDoubt = true
	}
	return !n.ended && call == n.current && time.Since(n.began) < max(n.owner.retryFor, n.owner.callTimeout/2)
}

// refused notes that the server does not want the connection.
func (n *lane) refused(a rpcAnswer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a.exception != "" && a.exception != standbyException {
		n.refusal = &remoteError{method: "connect", class: a.exception, message: firstLine(a.message, a.exception)}
	}
}

// answerTo returns the last answer to a method in this call.
func (n *lane) answerTo(method string) *rpcAnswer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.noted[method]
}

// ours reports whether a method is called by lane.call only, and not by streams.
func ours(method string) bool {
	switch method {
	case methodCreate, methodMkdirs, methodRename, methodDelete, methodStat, methodListing, methodLogin:
		return true
	}
	return false
}

// hold keeps the lane alive for a stream; release lets go of it.
func (n *lane) hold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.streams++
}

func (n *lane) release() {
	n.mu.Lock()
	n.streams--
	over := n.retired && n.streams == 0
	n.mu.Unlock()
	if over {
		n.end()
	}
}

// retire ends the lane when it has no streams any more.
func (n *lane) retire() {
	n.mu.Lock()
	n.retired = true
	over := n.streams == 0
	n.mu.Unlock()
	if over {
		n.end()
	}
}

// end breaks the connection and lets the library's client end in the background: it waits for a call that is under way.
func (n *lane) end() {
	n.mu.Lock()
	n.ended = true
	conn, client := n.conn, n.client
	n.mu.Unlock()
	if conn != nil {
		_ = conn.Conn.Close()
	}
	n.owner.mu.Lock()
	delete(n.owner.lanes, n)
	n.owner.mu.Unlock()
	if client != nil && n.closing.CompareAndSwap(false, true) {
		n.owner.work.Go(func() { _ = client.Close() })
	}
}

// asRemote returns the exception that an error is, or nil.
func asRemote(method string, err error, noted *rpcAnswer) error {
	var remote hdfs.Error
	switch {
	case errors.As(err, &remote):
		class := remote.Exception()
		return &remoteError{method: remote.Method(), class: class, message: firstLine(remote.Message(), class)}
	case noted != nil && noted.status != 0 && isMapped(err):
		return &remoteError{method: method, class: noted.exception, message: firstLine(noted.message, noted.exception)}
	}
	return nil
}

// judge turns what the library returns into an error of a client, with what was seen on the connection.
func (n *lane) judge(method string, err error) error {
	if err == nil {
		return nil
	}
	n.mu.Lock()
	noted, wasLost, refusal, dialing, cause := n.noted[method], n.inDoubt, n.refusal, n.dialing, n.cause
	if noted == nil {
		noted = n.noted[methodStat] // with which the library begins many calls
	}
	n.mu.Unlock()
	if remote := asRemote(method, err, noted); remote != nil {
		return remote
	}
	if isMapped(err) {
		return bare(err)
	}
	n.broken.Store(true)
	if refusal != nil {
		return refusal
	}
	text := bare(err)
	switch {
	case dialing != nil:
		text = fmt.Errorf("no NameNode of %v: %w", n.owner.settings.addresses, dialing)
	case cause != nil:
		text = fmt.Errorf("no answer of a NameNode of %v: %w", n.owner.settings.addresses, cause)
	}
	return &connError{err: text, doubt: wasLost}
}
