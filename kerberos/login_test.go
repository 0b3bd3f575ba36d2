package kerberos

import (
	"context"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recorder keeps events; its clock can be set forward.
type recorder struct {
	mu     sync.Mutex
	events []Event
	shift  atomic.Int64
}

func (r *recorder) attach(o Options) Options {
	o.Events = func(e Event) { r.mu.Lock(); defer r.mu.Unlock(); r.events = append(r.events, e) }
	o.Now = func() time.Time { return time.Now().Add(time.Duration(r.shift.Load())) }
	return o
}

func (r *recorder) forward(d time.Duration) { r.shift.Add(int64(d)) }

func (r *recorder) kinds() (kinds []EventKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (r *recorder) last() Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[len(r.events)-1]
}

func login(t *testing.T, o Options) *Session {
	t.Helper()
	s, err := Login(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// requireService proves that the KDC takes the session's ticket, and for whom.
func requireService(t *testing.T, s *Session, name string) {
	t.Helper()
	_, _, err := s.Client().GetServiceTicket("svc/localhost")
	require.NoError(t, err)
	require.Equal(t, name, s.Client().Credentials.UserName())
}

func TestLoginByKeytabPasswordAndCache(t *testing.T) {
	for _, preauth := range []bool{false, true} {
		r := startRealm(t, realmOptions{requirePreauth: preauth})
		text, err := os.ReadFile(r.conf)
		require.NoError(t, err)
		content, err := os.ReadFile(r.keytab("alice"))
		require.NoError(t, err)
		cache := r.dir + "/cc"
		r.command("", "kinit", "-c", cache, "-k", "-t", r.keytab("bob"), "bob")
		for name, o := range map[string]Options{
			"alice": r.options("alice"),
			"carol": {Principal: "carol@" + testRealm, Password: password("c a r o l"), ConfigText: string(text)},
			"bob":   {CredentialCache: "FILE:" + cache, Config: r.conf},
		} {
			s := login(t, o)
			require.Equal(t, name+"@"+testRealm, s.Principal())
			requireService(t, s, name)
			require.WithinDuration(t, time.Now().Add(10*time.Hour), s.Expires(), time.Minute)
		}
		t.Setenv("KRB5_CONFIG", r.conf)
		t.Setenv("KRB5CCNAME", cache)
		requireService(t, login(t, Options{}), "bob")
		requireService(t, login(t, Options{Principal: "alice", KeytabBytes: content}), "alice")
	}
}

func TestLoginThatCannotBeSaysWhy(t *testing.T) {
	for _, preauth := range []bool{false, true} {
		r := startRealm(t, realmOptions{requirePreauth: preauth})
		r.admin("addprinc -pw locked " + "locked\nmodprinc -allow_tix locked\naddprinc -pw old old\nmodprinc -pwexpire yesterday old\naddprinc -pw gone gone\nmodprinc -expire yesterday gone\n")
		skewed := strings.Replace(readFile(t, r.conf), "[libdefaults]", "[libdefaults]\nclockskew = 0s", 1)
		cache := r.dir + "/cc"
		r.command("", "kinit", "-c", cache, "-k", "-t", r.keytab("bob"), "bob")
		for name, c := range map[string]struct {
			Options
			want error
		}{
			"wrong password":       {Options{Principal: "carol", Password: password("hunter2hunter2"), Config: r.conf}, ErrCredentials},
			"empty password":       {Options{Principal: "carol", Password: password(""), Config: r.conf}, fs.ErrInvalid},
			"unknown principal":    {Options{Principal: "nobody", Password: password("hunter2hunter2"), Config: r.conf}, ErrUnknownPrincipal},
			"another's keytab":     {Options{Principal: "alice", Keytab: r.keytab("bob"), Config: r.conf}, ErrUnknownPrincipal},
			"realm without KDC":    {Options{Principal: "carol@NOWHERE.TEST", Password: password("x"), Config: r.conf}, ErrUnknownRealm},
			"realm of another KDC": {Options{Principal: "carol@ELSEWHERE.TEST", Password: password("x"), Config: r.conf}, ErrUnknownPrincipal},
			"skew":                 {Options{Principal: "carol", Password: password("c a r o l"), ConfigText: skewed}, ErrClockSkew},
			"locked":               {Options{Principal: "locked", Password: password("locked"), Config: r.conf}, ErrRefused},
			"expired password":     {Options{Principal: "old", Password: password("old"), Config: r.conf}, ErrExpired},
			"expired principal":    {Options{Principal: "gone", Password: password("gone"), Config: r.conf}, ErrExpired},
			"no keytab":            {Options{Principal: "alice", Keytab: r.dir + "/missing", Config: r.conf}, fs.ErrNotExist},
			"no cache":             {Options{CredentialCache: r.dir + "/missing", Config: r.conf}, fs.ErrNotExist},
			"another's cache":      {Options{Principal: "alice", CredentialCache: cache, Config: r.conf}, ErrUnknownPrincipal},
			"no configuration":     {Options{Principal: "alice", Keytab: r.keytab("alice"), Config: r.dir + "/missing"}, fs.ErrInvalid},
		} {
			_, err := Login(t.Context(), c.Options)
			require.ErrorIs(t, err, c.want, "%s, preauth %v", name, preauth)
			require.NotContains(t, err.Error(), "hunter2", name)
			t.Log(err)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestEncryptionTypes(t *testing.T) {
	r := startRealm(t, realmOptions{enctypes: "aes256-cts-hmac-sha384-192 aes128-cts-hmac-sha256-128", requirePreauth: true})
	requireService(t, login(t, r.options("alice")), "alice")
	requireService(t, login(t, Options{Principal: "carol", Password: password("c a r o l"), Config: r.conf}), "carol")

	o := r.options("alice")
	o.Config, o.ConfigText = "", strings.Replace(readFile(t, r.conf), "[libdefaults]", "[libdefaults]\npermitted_enctypes = aes256-cts", 1)
	_, err := Login(t.Context(), o)
	require.ErrorIs(t, err, ErrEncryptionType, "a keytab without a key of a permitted type")
	o = Options{Principal: "carol", Password: password("c a r o l"), ConfigText: o.ConfigText}
	_, err = Login(t.Context(), o)
	require.ErrorIs(t, err, ErrEncryptionType, "a KDC without a key of a permitted type")

	// Of the keytab's types the KDC gets to know those alone, and so does not choose another.
	r.admin("addprinc -randkey +requires_preauth erin\nktadd -k " + r.keytab("erin") + " -norandkey erin\n")
	r.command("rkt "+r.keytab("erin")+"\ndelent 1\nwkt "+r.dir+"/one.keytab\nq\n", "ktutil")
	requireService(t, login(t, Options{Principal: "erin", Keytab: r.dir + "/one.keytab", Config: r.conf}), "erin")
}

func TestTicketIsRenewedAndThenReplaced(t *testing.T) {
	r := startRealm(t, realmOptions{life: 20 * time.Second})
	var rec recorder
	s := login(t, rec.attach(r.options("alice")))
	require.NoError(t, s.AffirmLogin(t.Context()))
	require.Equal(t, []EventKind{EventLogin}, rec.kinds(), "a fresh ticket is kept")
	first, client := s.Expires(), s.Client()

	rec.forward(17 * time.Second)
	require.NoError(t, s.AffirmLogin(t.Context()))
	require.Equal(t, []EventKind{EventLogin, EventRenewal}, rec.kinds())
	require.False(t, s.Expires().Before(first))
	require.NotSame(t, client, s.Client())
	requireService(t, s, "alice")

	rec.forward(10 * time.Minute)
	require.NoError(t, s.AffirmLogin(t.Context()))
	require.Equal(t, []EventKind{EventLogin, EventRenewal, EventExpiry, EventLogin}, rec.kinds(), "a ticket that is over cannot be renewed")
}

func TestTicketThatIsNotRenewableIsReplacedBeforeItsEnd(t *testing.T) {
	r := startRealm(t, realmOptions{notRenewable: true, requirePreauth: true})
	var rec recorder
	s := login(t, rec.attach(Options{Principal: "carol", Password: password("c a r o l"), Config: r.conf}))
	rec.forward(9 * time.Hour)
	require.NoError(t, s.AffirmLogin(t.Context()))
	require.Equal(t, []EventKind{EventLogin, EventLogin}, rec.kinds())
	require.Zero(t, rec.last().RenewUntil)
}

func TestRunOutlivesManyTickets(t *testing.T) {
	r := startRealm(t, realmOptions{life: 2 * time.Second, notRenewable: true})
	logins := make(chan Event, 100)
	o := r.options("alice")
	o.Events = func(e Event) { logins <- e }
	s := login(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for range 3 {
		e := <-logins
		require.Equal(t, EventLogin, e.Kind, "%v", e.Err)
	}
	requireService(t, s, "alice")
	cancel()
	require.NoError(t, <-ended)
	go func() { ended <- s.Run(context.Background()) }()
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-ended, fs.ErrClosed)
	require.ErrorIs(t, s.AffirmLogin(t.Context()), fs.ErrClosed)
	require.NoError(t, s.Close())
}

func TestKeytabThatIsReplacedIsReadAnew(t *testing.T) {
	r := startRealm(t, realmOptions{requirePreauth: true})
	var rec recorder
	s := login(t, rec.attach(r.options("alice")))
	old := readFile(t, r.keytab("alice"))

	write(t, r.keytab("alice"), old[:len(old)/2])
	require.NoError(t, s.AffirmLogin(t.Context()), "the ticket is good, whatever the file is")
	require.Equal(t, EventFailure, rec.last().Kind)
	requireService(t, s, "alice")

	require.NoError(t, os.Remove(r.keytab("alice")))
	require.NoError(t, s.AffirmLogin(t.Context()))
	r.admin("ktadd -k " + r.dir + "/new alice\n")
	write(t, r.keytab("alice"), old)
	require.NoError(t, s.AffirmLogin(t.Context()))
	require.ErrorIs(t, rec.last().Err, ErrCredentials, "the key of before is not the principal's any more")

	require.NoError(t, os.Rename(r.dir+"/new", r.keytab("alice")))
	require.NoError(t, s.AffirmLogin(t.Context()))
	require.Equal(t, []EventKind{EventLogin, EventFailure, EventFailure, EventLogin}, rec.kinds())
	requireService(t, s, "alice")
}

func TestCacheIsReadAnewWhenItChangesAndBeforeTheTicketEnds(t *testing.T) {
	r := startRealm(t, realmOptions{life: time.Hour, notRenewable: true})
	cache := r.dir + "/cc"
	kinit := func(life, name string) {
		r.command("", "kinit", "-l", life, "-c", r.dir+"/tmp", "-k", "-t", r.keytab(name), name)
		require.NoError(t, os.Rename(r.dir+"/tmp", cache))
	}
	kinit("10m", "bob")
	var rec recorder
	s := login(t, rec.attach(Options{CredentialCache: cache, Config: r.conf}))
	first := s.Expires()

	kinit("30m", "bob")
	require.NoError(t, s.AffirmLogin(t.Context()))
	require.Equal(t, []EventKind{EventLogin, EventLogin}, rec.kinds())
	require.True(t, s.Expires().After(first))

	good := readFile(t, cache)
	write(t, cache, good[:len(good)/2])
	require.NoError(t, s.AffirmLogin(t.Context()), "the ticket is good, whatever the file is")
	require.Equal(t, EventFailure, rec.last().Kind)

	kinit("1h", "alice")
	require.NoError(t, s.AffirmLogin(t.Context()))
	require.ErrorIs(t, rec.last().Err, ErrUnknownPrincipal, "a session does not become another's")
	require.Equal(t, "bob@"+testRealm, s.Principal())

	kinit("30m", "bob")
	rec.forward(40 * time.Minute)
	err := s.AffirmLogin(t.Context())
	require.ErrorIs(t, err, ErrExpired)
	require.ErrorContains(t, err, cache)
	require.ErrorContains(t, err, "kinit")
	require.Contains(t, rec.kinds(), EventExpiry)
	kinit("1h", "bob")
	require.NoError(t, s.AffirmLogin(t.Context()), "it recovers when there is a ticket again")
	requireService(t, s, "bob")
}

func TestCacheOfARenewableTicketIsRenewedInMemory(t *testing.T) {
	r := startRealm(t, realmOptions{life: time.Minute})
	cache := r.dir + "/cc"
	r.command("", "kinit", "-l", "1m", "-r", "1d", "-c", cache, "-k", "-t", r.keytab("bob"), "bob")
	before := readFile(t, cache)
	var rec recorder
	s := login(t, rec.attach(Options{CredentialCache: cache, Config: r.conf}))
	rec.forward(50 * time.Second)
	require.NoError(t, s.AffirmLogin(t.Context()))
	require.Equal(t, []EventKind{EventLogin, EventRenewal}, rec.kinds())
	requireService(t, s, "bob")
	require.Equal(t, before, readFile(t, cache))
}

func TestPrincipalsOfOneProcessDoNotInfluenceEachOther(t *testing.T) {
	one, two := startRealm(t, realmOptions{}), startRealm(t, realmOptions{enctypes: "aes128-cts-hmac-sha256-128"})
	a, b, c := login(t, one.options("alice")), login(t, one.options("bob")), login(t, two.options("alice"))
	var wait sync.WaitGroup
	for range 8 {
		for s, name := range map[*Session]string{a: "alice", b: "bob", c: "alice"} {
			wait.Go(func() {
				if _, _, err := s.Client().GetServiceTicket("svc/localhost"); err != nil || s.Client().Credentials.UserName() != name {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	wait.Wait()
	require.NoError(t, a.Close())
	requireService(t, b, "bob")
	one.stop()
	requireService(t, c, "alice")
}

// waitingContext counts those that begin to wait for its end.
type waitingContext struct {
	context.Context
	waiting *atomic.Int64
}

func (c waitingContext) Done() <-chan struct{} {
	c.waiting.Add(1)
	return c.Context.Done()
}

func TestManyCallersShareOneLogin(t *testing.T) {
	r := startRealm(t, realmOptions{requirePreauth: true})
	var rec recorder
	s := login(t, rec.attach(r.options("alice")))
	for _, c := range []struct {
		forward time.Duration
		want    []EventKind
	}{
		{11 * time.Hour, []EventKind{EventExpiry, EventLogin}},
		{9 * time.Hour, []EventKind{EventRenewal}},
	} {
		before := len(rec.kinds())
		rec.shift.Store(int64(c.forward))
		r.signal(syscall.SIGSTOP) // until all of them wait
		const callers = 64
		var waiting atomic.Int64
		var wait sync.WaitGroup
		for range callers {
			wait.Go(func() {
				if err := s.AffirmLogin(waitingContext{t.Context(), &waiting}); err != nil {
					t.Error(err)
				}
			})
		}
		require.Eventually(t, func() bool { return waiting.Load() == callers }, 10*time.Second, time.Millisecond)
		r.signal(syscall.SIGCONT)
		wait.Wait()
		require.Eventually(t, func() bool { return !underWay(s) }, 10*time.Second, time.Millisecond)
		require.Equal(t, c.want, rec.kinds()[before:])
	}
}

func underWay(s *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempt != nil
}

func TestDeadKDCCostsBoundedTime(t *testing.T) {
	r := startRealm(t, realmOptions{})
	var rec recorder
	s := login(t, rec.attach(r.options("alice")))
	r.signal(syscall.SIGSTOP)
	within := func(o Options, limit time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		start := time.Now()
		var err error
		if o.Principal != "" {
			_, err = Login(ctx, o)
		} else {
			err = s.AffirmLogin(ctx)
		}
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, r.addr)
		require.Less(t, time.Since(start), limit+250*time.Millisecond)
	}
	within(r.options("bob"), 50*time.Millisecond)

	rec.forward(9 * time.Hour)
	start := time.Now()
	require.NoError(t, s.AffirmLogin(t.Context()), "the ticket is still good")
	require.Less(t, time.Since(start), 1250*time.Millisecond)
	rec.forward(2 * time.Hour)
	within(Options{}, 50*time.Millisecond)
	r.signal(syscall.SIGCONT)
	require.Eventually(t, func() bool { return !underWay(s) }, 20*time.Second, time.Millisecond)
	rec.shift.Store(0)
	requireService(t, s, "alice")

	r.stop()
	rec.forward(11 * time.Hour)
	err := s.AffirmLogin(t.Context())
	require.ErrorIs(t, err, ErrUnreachable)
	r.start()
	require.NoError(t, s.AffirmLogin(t.Context()), "it is back as soon as the KDC is")
}

func TestNothingRunsInTheBackground(t *testing.T) {
	r := startRealm(t, realmOptions{})
	var rec recorder
	s := login(t, rec.attach(r.options("alice")))
	requireService(t, s, "alice")
	rec.forward(9 * time.Hour)
	require.NoError(t, s.AffirmLogin(t.Context()))
	requireService(t, s, "alice")
	require.Equal(t, []EventKind{EventLogin, EventRenewal}, rec.kinds())
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool {
		text := string(stacks[:runtime.Stack(stacks, true)])
		return !strings.Contains(text, "gokrb5") && !strings.Contains(text, "kerberos.(*Session)")
	}, 20*time.Second, 10*time.Millisecond)
}
