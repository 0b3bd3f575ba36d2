package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/lockfile"
)

// signals are the orders that are signals.
var signals = map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP, "cont": syscall.SIGCONT}

// server runs a cluster and takes orders.
type server struct {
	folder Folder
	mu     sync.Mutex // one order at a time
	c      *cluster
	keep   bool               // used or not
	done   context.CancelFunc // ends Run
}

// Run runs the cluster that the folder's spec describes until nobody uses it any more, or it is ended by order or by ctx, and
// removes it. It writes one line to report: "ready", or an error.
func Run(ctx context.Context, f Folder, report io.Writer) error {
	return runBooted(ctx, f, report, start)
}

// boot starts a cluster in a folder.
type boot func(ctx context.Context, dir string, spec Spec, changed func(State) error) (*cluster, error)

func runBooted(ctx context.Context, f Folder, report io.Writer, start boot) error {
	err := run(ctx, f, report, start)
	if err != nil {
		fmt.Fprintf(report, "%q\n", err.Error())
	}
	return err
}

func run(ctx context.Context, f Folder, report io.Writer, start boot) error {
	alive, err := waitShortly(ctx, f.aliveLock()) // those who look whether it is held hold it for a moment
	if err != nil {
		return fmt.Errorf("another supervisor runs: %w", err)
	}
	defer func() { _ = alive.Unlock() }()
	var spec Spec
	if err := readJSON(f.specFile(), &spec); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{folder: f, done: cancel}

	s.c, err = start(ctx, f.cluster(), spec, func(st State) error { return writeJSON(f.stateFile(), st) })
	if err != nil {
		return err // what is in the folder may tell why; the next start clears it
	}
	lease, err := s.serve(ctx, report)
	err = errors.Join(err, s.c.end(), f.removeAlone(ctx))
	if lease != nil {
		err = errors.Join(err, lease.Unlock())
	}
	return err
}

// removeAlone removes the folder while nobody starts a cluster there.
func (f Folder) removeAlone(ctx context.Context) error {
	starting, err := waitShortly(context.WithoutCancel(ctx), f.startLock())
	if err != nil {
		return err
	}
	return errors.Join(f.remove(), starting.Unlock())
}

func waitShortly(ctx context.Context, lock string) (*lockfile.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return lockfile.Wait(ctx, lock, lockfile.Exclusive)
}

// serve takes orders until the end. It returns the lease if that came since nobody uses the cluster: while it is held
// nobody new can come.
func (s *server) serve(ctx context.Context, report io.Writer) (lease *lockfile.Lock, err error) {
	listener, err := net.Listen("unix", s.folder.socket())
	if err != nil {
		return nil, err
	}
	orders := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- orders.Serve(listener) }()
	fmt.Fprintln(report, "ready")

	select {
	case <-ctx.Done():
	case lease = <-s.awaitUnused(ctx):
	}
	shut, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err = orders.Shutdown(shut)
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	s.mu.Lock() // until the last order has been carried out
	defer s.mu.Unlock()
	return lease, err
}

// awaitUnused sends the lease, held exclusively, when nobody has used the cluster for its time to linger and it is not kept.
func (s *server) awaitUnused(ctx context.Context) <-chan *lockfile.Lock {
	unused := make(chan *lockfile.Lock, 1)
	go func() {
		for {
			lease, err := lockfile.Wait(ctx, s.folder.leaseLock(), lockfile.Exclusive)
			if err != nil {
				return // ctx has ended
			}
			if err := lease.Unlock(); err != nil {
				s.done()
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(s.c.Spec.Linger):
			}
			// If it is not kept now it will not be: an order is given by those who hold a lease.
			lease, err = lockfile.Try(s.folder.leaseLock(), lockfile.Exclusive)
			switch {
			case err != nil:
			case s.kept():
				_ = lease.Unlock()
				return
			default:
				unused <- lease
				return
			}
		}
	}()
	return unused
}

func (s *server) kept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keep
}

// handler takes orders: a POST to /kill, /stop, /cont or /start with the name of a process, or to /keep or
// /down; a GET of /state.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for verb, sig := range signals {
		mux.HandleFunc("POST /"+verb, s.order(func(name string) error { return s.c.signal(name, sig) }))
	}
	mux.HandleFunc("POST /start", s.order(s.c.launch))
	mux.HandleFunc("POST /keep", s.order(func(string) error { s.keep = true; return nil }))
	mux.HandleFunc("POST /down", func(http.ResponseWriter, *http.Request) { s.done() })
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.c.refresh()
		if err := json.NewEncoder(w).Encode(s.c.State); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}

func (s *server) order(do func(name string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.c.refresh()
		if err := do(filepath.Base(r.URL.Query().Get("name"))); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	}
}
