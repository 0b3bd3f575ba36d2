package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/lockfile"
)

// ErrDown is returned if no cluster runs in the folder.
var ErrDown = errors.New("no cluster runs here")

// Lease keeps a cluster alive. It ends with the process that holds it.
type Lease struct{ lock *lockfile.Lock }

// Release lets go of the cluster, which ends if it was the last one's and is not kept.
func (l *Lease) Release() error { return l.lock.Unlock() }

// Acquire returns a lease of the cluster in the folder. If none runs there, it is started, by the program with the arguments
// "run" and the folder, as the spec that prepare returns says.
func Acquire(ctx context.Context, f Folder, program func(context.Context) (string, error), prepare func(context.Context) (Spec, error)) (*Lease, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	for {
		l, err := acquireOnce(ctx, f, program, prepare)
		if l != nil || err != nil {
			return l, err
		}
		// One is about to end: its locks vanish with it.
		if err := f.awaitEnd(ctx); err != nil {
			return nil, err
		}
	}
}

// acquireOnce returns nothing if a cluster is there that is about to end.
func acquireOnce(ctx context.Context, f Folder, program func(context.Context) (string, error), prepare func(context.Context) (Spec, error)) (*Lease, error) {
	starting, err := lockfile.Wait(ctx, f.startLock(), lockfile.Exclusive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = starting.Unlock() }()
	alive, err := lockfile.Held(f.aliveLock())
	if err != nil {
		return nil, err
	}
	lock, err := lockfile.Try(f.leaseLock(), lockfile.Shared)
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, nil //nolint:nilnil // neither: look again
	}
	if err != nil {
		return nil, err
	}
	if alive {
		err = f.awaitAnswer(ctx)
	} else {
		err = f.launch(ctx, program, prepare)
	}
	switch {
	case alive && errors.Is(err, ErrDown):
		return nil, lock.Unlock()
	case err != nil:
		return nil, errors.Join(err, lock.Unlock())
	}
	return &Lease{lock}, nil
}

// awaitAnswer waits until the supervisor takes orders: whoever started it may have been killed before that.
func (f Folder) awaitAnswer(ctx context.Context) error {
	return poll(ctx, func() error {
		_, err := f.Now(ctx)
		if errors.Is(err, ErrDown) {
			return final(err)
		}
		return err
	})
}

// launch starts a supervisor and waits for its report. The start lock is held.
func (f Folder) launch(ctx context.Context, program func(context.Context) (string, error), prepare func(context.Context) (Spec, error)) error {
	if err := f.clear(); err != nil {
		return err
	}
	spec, err := prepare(ctx)
	if err != nil {
		return err
	}
	path, err := program(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.cluster(), 0o700); err != nil {
		return err
	}
	if err := writeJSON(f.specFile(), spec); err != nil {
		return err
	}
	log, err := os.OpenFile(f.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(path, "run", string(f)) // not CommandContext: it outlives this call, and ends by itself
	cmd.Stderr = log
	cmd.Dir = f.cluster()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's signals are for the tests
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return awaitReport(ctx, cmd, out)
}

// awaitReport waits for the supervisor's one line. If the context ends first, the supervisor is killed, and with it, on Linux,
// its children; the next start looks for those of them that are left.
func awaitReport(ctx context.Context, cmd *exec.Cmd, out io.Reader) error {
	report := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			line = "the supervisor ended without a word: " + err.Error()
		}
		report <- strings.TrimSpace(line)
		_ = cmd.Wait() // reaped whenever it ends, if this process lives that long
	}()
	select {
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), cmd.Process.Kill())
	case line := <-report:
		if line == "ready" {
			return nil
		}
		if text, err := strconv.Unquote(line); err == nil {
			line = text
		}
		return errors.New(line)
	}
}

// clear ends and removes what a supervisor left that was killed.
func (f Folder) clear() error {
	s, err := f.State()
	if err == nil {
		for _, p := range s.Processes {
			err = errors.Join(err, p.ID.Kill())
		}
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(f.cluster()))
}

// Running reports whether a cluster runs in the folder.
func (f Folder) Running() (bool, error) { return lockfile.Held(f.aliveLock()) }

// awaitEnd waits until no supervisor runs.
func (f Folder) awaitEnd(ctx context.Context) error {
	return poll(ctx, func() error {
		running, err := f.Running()
		if err != nil {
			return final(err)
		}
		if running {
			return errors.New("the cluster has not ended")
		}
		return nil
	})
}

// Down ends the cluster, used or not, waits for that, and removes the folder; also where a supervisor was killed.
func Down(ctx context.Context, f Folder) error {
	running, err := f.Running()
	if err != nil {
		return err
	}
	if running {
		if err := f.Order(ctx, "down", ""); err != nil {
			s, e := f.State()
			if e != nil {
				return errors.Join(err, e)
			}
			if e := s.Supervisor.Kill(); e != nil { // it does not listen
				return errors.Join(err, e)
			}
		}
		if err := f.awaitEnd(ctx); err != nil {
			return err
		}
	}
	if _, err := os.Stat(string(f)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	starting, err := lockfile.Wait(ctx, f.startLock(), lockfile.Exclusive)
	if err != nil {
		return err
	}
	defer func() { _ = starting.Unlock() }()
	if running, err = f.Running(); running || err != nil {
		return err // somebody else's, started since
	}
	return errors.Join(f.clear(), f.remove())
}

// Order gives an order: kill, stop, cont or start, with the name of a process; or keep, which makes the cluster stay when
// nobody uses it, until it is ended by Down.
func (f Folder) Order(ctx context.Context, verb, name string) error {
	_, err := f.ask(ctx, http.MethodPost, "/"+verb+"?name="+url.QueryEscape(name))
	return err
}

// Now asks for the state as it is.
func (f Folder) Now(ctx context.Context) (State, error) {
	var s State
	body, err := f.ask(ctx, http.MethodGet, "/state")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	return s, err
}

// orderTimeout is more than any order takes: a supervisor that does not answer hangs.
const orderTimeout = 30 * time.Second

func (f Folder) ask(ctx context.Context, method, path string) ([]byte, error) {
	if running, err := f.Running(); err != nil || !running {
		return nil, errors.Join(err, fmt.Errorf("%s: %w", f, ErrDown))
	}
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", f.socket())
	}}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(body)))
	}
	return body, err
}
