package kerberos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
)

// Session is a login that is kept up. Its methods may be used concurrently.
type Session struct {
	options   Options
	config    *configuration
	principal principal // empty until the first ticket, if it is that of a credential cache
	path      string    // of the keytab or the credential cache; empty without
	ctx       context.Context
	cancel    context.CancelFunc

	mu       sync.Mutex
	closed   bool
	client   *client.Client
	retired  []retired // connections that are being made may use them
	ticket   *ticket
	stamp    stamp // of path, at the last attempt
	failures int
	retryAt  time.Time
	lapsed   bool // the end of the ticket has been told
	attempt  *attempt
}

// retired is the client of a former ticket.
type retired struct {
	client *client.Client
	end    time.Time
}

// grace is how long after the end of its ticket a client may still be waiting for a KDC's refusal.
const grace = 5 * time.Minute

// attempt is a login under way, for which any number of callers may wait. The library cannot be interrupted, so that it goes
// on if they do not: each KDC of the realm is given 5 seconds for a message, of which a login has two.
type attempt struct {
	done chan struct{}
	err  error
}

// stamp tells one content of a file from another.
type stamp struct {
	info os.FileInfo // nil if there is none
}

func stampOf(path string) stamp {
	if path == "" {
		return stamp{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info}
}

// changedTo is false if the other file is not there: it may be on the way.
func (s stamp) changedTo(o stamp) bool {
	if o.info == nil {
		return false
	}
	return s.info == nil || !os.SameFile(s.info, o.info) || s.info.Size() != o.info.Size() || !s.info.ModTime().Equal(o.info.ModTime())
}

// softWait is how long AffirmLogin waits for a better ticket while it has a good one.
const softWait = time.Second

// Login logs in. It returns within 250 ms of the end of ctx. Wrong options or configuration are fs.ErrInvalid, a missing
// keytab or credential cache is fs.ErrNotExist; other errors are those of this package. The session has to be closed.
func Login(ctx context.Context, o Options) (*Session, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c, err := o.loadConfig()
	if err != nil {
		return nil, err
	}
	s := &Session{options: o, config: c}
	if o.Principal != "" {
		if s.principal, err = parsePrincipal(o.Principal); err != nil {
			return nil, err
		}
		if s.principal.realm == "" {
			s.principal.realm = c.LibDefaults.DefaultRealm
		}
		if s.principal.realm == "" {
			return nil, fmt.Errorf("kerberos: principal %q has no realm, and the configuration %s no default_realm: %w", o.Principal, c.from, fs.ErrInvalid)
		}
	}
	if o.source() == fromCache {
		if s.path, err = cachePath(c.cacheName(o.CredentialCache)); err != nil {
			return nil, fmt.Errorf("kerberos: %w", err)
		}
	} else {
		s.path = strings.TrimPrefix(o.Keytab, "FILE:")
		if err := c.checkRealm(s.principal.realm); err != nil {
			return nil, err
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.AffirmLogin(ctx); err != nil {
		s.shut()
		return nil, err
	}
	return s, nil
}

// Principal returns the name with its realm.
func (s *Session) Principal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.principal.String()
}

// Expires returns when the ticket ends.
func (s *Session) Expires() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ticket.end
}

// Client returns a client that has the present ticket. It does not get later ones, so that it has to be asked for again after
// each AffirmLogin; it stays usable until its ticket ends or the session is closed.
func (s *Session) Client() *client.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// AffirmLogin sees to it that there is a ticket that can be used, and replaces one in time before its end, or when the keytab
// or the credential cache has changed. While the ticket is fresh it only looks at the clock and at that file. All callers
// share one login. It returns within 250 ms of the end of ctx: nil if the present ticket is good all the same. A closed
// session is fs.ErrClosed.
func (s *Session) AffirmLogin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("kerberos: login: %w", err)
	}
	now, file := s.options.now(), stampOf(s.path)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("kerberos: session: %w", fs.ErrClosed)
	}
	needed := decide(s.facts(now, file))
	if needed == fresh {
		s.mu.Unlock()
		return nil
	}
	a := s.attempt
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		s.attempt = a
		go s.run(a, file, now, needed)
	}
	s.mu.Unlock()

	var enough <-chan time.Time
	if needed == better {
		timer := time.NewTimer(softWait)
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case <-a.done:
		if needed == better {
			return nil // what went wrong has been told to the hook and the log
		}
		return a.err
	case <-enough:
		return nil
	case <-ctx.Done():
		if needed == better {
			return nil
		}
		return fmt.Errorf("kerberos: login of %s: %w from %q in time: %w: %s", s.who(), ErrUnreachable, s.kdcs(), ctx.Err(), hintReach)
	}
}

func (s *Session) who() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.principal.name == "" {
		return s.path
	}
	return s.principal.String()
}

func (s *Session) kdcs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.kdcs(s.principal.realm)
}

// facts needs the lock.
func (s *Session) facts(now time.Time, file stamp) facts {
	f := facts{now: now, changed: s.path != "" && s.stamp.changedTo(file), retryAt: s.retryAt}
	if s.ticket != nil {
		f.start, f.end = s.ticket.start, s.ticket.end
	}
	return f
}

// run is the goroutine of an attempt.
func (s *Session) run(a *attempt, file stamp, now time.Time, needed need) {
	s.mu.Lock()
	old, changed := s.ticket, s.stamp.changedTo(file)
	lapsed := needed == must && old != nil && !s.lapsed
	s.lapsed = s.lapsed || lapsed
	s.mu.Unlock()
	if lapsed {
		s.emit(EventExpiry, now, old, fmt.Errorf("kerberos: the ticket of %s: %w at %v", old.principal(), ErrExpired, old.end.UTC()), false)
	}
	t, kind, err := s.obtain(old, changed, now)
	var cl *client.Client
	if err == nil {
		if cl, err = t.newClient(s.config.Config); err != nil {
			err = explain("login", err)
		}
	}
	s.mu.Lock()
	s.stamp = file
	if err != nil {
		s.failures++
		s.retryAt = now.Add(backoff(s.failures))
		t = s.ticket
	} else {
		s.failures, s.retryAt, s.lapsed = 0, time.Time{}, false
		s.retire(now)
		s.ticket, s.client = t, cl
		s.principal = t.principal()
	}
	closed := s.closed
	s.mu.Unlock()
	if !closed {
		if err != nil {
			kind = EventFailure
		}
		s.emit(kind, now, t, err, err != nil && needed == must)
	}
	s.mu.Lock()
	a.err = err
	s.attempt = nil
	close(a.done)
	s.mu.Unlock()
}

// retire keeps the present client until nobody can use it any more. It needs the lock.
func (s *Session) retire(now time.Time) {
	s.retired = slices.DeleteFunc(s.retired, func(r retired) bool {
		over := now.After(r.end.Add(grace))
		if over {
			r.client.Destroy()
		}
		return over
	})
	if s.client != nil {
		s.retired = append(s.retired, retired{s.client, s.ticket.end})
	}
}

func (s *Session) emit(kind EventKind, now time.Time, t *ticket, err error, returned bool) {
	e := Event{Kind: kind, Time: now, Principal: s.who(), Err: err}
	if t != nil {
		e.Expires = t.end
		if t.renewTill.After(t.end) {
			e.RenewUntil = t.renewTill
		}
	}
	s.options.emit(e, returned)
}

// obtain gets a ticket by the cheapest way that there is.
func (s *Session) obtain(old *ticket, changed bool, now time.Time) (*ticket, EventKind, error) {
	if s.options.source() == fromCache {
		return s.obtainFromCache(old, now)
	}
	if old != nil && !changed && renewable(now, old.start, old.end, old.renewTill) {
		t, err := s.renew(old)
		if err == nil || errors.Is(err, ErrUnreachable) {
			return t, EventRenewal, err
		}
	}
	t, err := s.login(s.ctx)
	return t, EventLogin, err
}

// obtainFromCache prefers what another program has put into the cache.
func (s *Session) obtainFromCache(old *ticket, now time.Time) (*ticket, EventKind, error) {
	t, err := readCache(s.path)
	if err == nil && s.principal.name != "" && t.principal() != s.principal {
		err = fmt.Errorf("kerberos: credential cache %s is that of %s, not of %s: %w: run kinit %s", s.path, t.principal(), s.principal, ErrUnknownPrincipal, s.principal)
	}
	newer := err == nil && (old == nil || t.end.After(old.end))
	if newer && now.Before(refreshAt(t.start, t.end)) {
		return t, EventLogin, nil
	}
	if newer {
		old = t
	}
	// What is left is to renew what there is, in memory only: the file is another program's.
	if old != nil && renewable(now, old.start, old.end, old.renewTill) {
		renewed, renewErr := s.renew(old)
		if renewErr == nil {
			return renewed, EventRenewal, nil
		}
		err = errors.Join(err, renewErr)
	}
	if newer && now.Before(t.end.Add(-margin(t.start, t.end))) {
		return t, EventLogin, nil
	}
	if err == nil {
		err = fmt.Errorf("kerberos: credential cache %s: the ticket of %s: %w: its end is %v, and it cannot be renewed: run kinit, or use a keytab",
			s.path, old.principal(), ErrExpired, old.end.UTC())
	}
	return nil, EventFailure, err
}

// Run keeps the session logged in without the help of AffirmLogin, until ctx ends (then it returns nil) or the session is
// closed (fs.ErrClosed). Failures are told to the hook and the log, and tried again.
func (s *Session) Run(ctx context.Context) error {
	for {
		timer := time.NewTimer(s.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-s.ctx.Done():
			timer.Stop()
			return fmt.Errorf("kerberos: session: %w", fs.ErrClosed)
		case <-timer.C:
		}
		// A failure without a ticket is in the events, and the next turn tries again.
		if err := s.AffirmLogin(ctx); errors.Is(err, fs.ErrClosed) {
			return err
		}
	}
}

// maxPause is how late Run sees that the keytab or the credential cache has changed.
const maxPause = time.Minute

// pause is how long nothing has to be done.
func (s *Session) pause() time.Duration {
	now := s.options.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.retryAt
	if s.ticket != nil && next.IsZero() {
		next = refreshAt(s.ticket.start, s.ticket.end)
	}
	return max(minBackoff/10, min(maxPause, next.Sub(now)))
}

// Close ends the session and waits for a login that is under way: with a dead KDC that is 5 seconds for each of the two messages
// and each KDC of the realm. The clients that Client returned must not be in use any more. A second Close does nothing.
func (s *Session) Close() error {
	if a := s.shut(); a != nil {
		<-a.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.retired {
		r.client.Destroy() // ends the goroutines that the library keeps for tickets of other realms
	}
	if s.client != nil {
		s.client.Destroy()
	}
	s.retired, s.client = nil, nil
	return nil
}

func (s *Session) shut() *attempt {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.attempt
}
