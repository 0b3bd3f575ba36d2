// Package supervisor runs the daemons of one cluster as its children, for as long as somebody uses it, and takes orders
// about them.
//
// The folder of a cluster holds:
//
//	start.lock   held exclusively by whoever starts or ends a cluster
//	lease.lock   held, shared, by each process that uses the cluster; the supervisor waits to hold it exclusively
//	alive.lock   held exclusively by the supervisor for its life
//	cluster/     all else; the supervisor removes it at its end
//
// The kernel releases these locks when their holder ends. So a test process that is killed lets go of the cluster too, and a
// supervisor that is killed is known to be dead.
package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/hadoop"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/kdc"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/probe"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/proc"
)

// Spec says what cluster to run. It is complete: defaults are filled in before.
type Spec struct {
	DataNodes       int           `json:"datanodes"`
	Kerberos        bool          `json:"kerberos"`
	Protection      string        `json:"protection"`
	TicketLifetime  time.Duration `json:"ticket_lifetime"`
	EncryptionTypes []string      `json:"encryption_types,omitempty"`
	Properties      hadoop.Site   `json:"properties,omitempty"`
	Parts           hadoop.Parts  `json:"parts"`
	Linger          time.Duration `json:"linger"` // how long it stays when nobody uses it any more
	StartTimeout    time.Duration `json:"start_timeout"`
}

// Process is what is known of a daemon, or of the KDC, or of the supervisor.
type Process struct {
	Name    string  `json:"name"`
	ID      proc.ID `json:"id"` // of the last start
	Running bool    `json:"running"`
	Stopped bool    `json:"stopped"` // by SIGSTOP
	Log     string  `json:"log"`
}

// Up reports whether the process can be expected to answer.
func (p Process) Up() bool { return p.Running && !p.Stopped }

// State is a cluster as it is.
type State struct {
	Spec       Spec          `json:"spec"`
	Layout     hadoop.Layout `json:"layout"`
	KDC        *kdc.KDC      `json:"kdc,omitempty"`
	Supervisor proc.ID       `json:"supervisor"`
	Processes  []Process     `json:"processes"`
	Start      time.Duration `json:"start"` // how long the start took
}

// Process finds a process by its name.
func (s State) Process(name string) (Process, bool) {
	for _, p := range s.Processes {
		if p.Name == name {
			return p, true
		}
	}
	return Process{}, false
}

// Login is the superuser's.
func (s State) Login() probe.Login {
	if s.KDC == nil {
		return probe.Login{User: s.Layout.ProcessUser}
	}
	return s.LoginAs(kdc.Superuser)
}

// LoginAs is the login of a user.
func (s State) LoginAs(user string) probe.Login {
	if s.KDC == nil {
		return probe.Login{User: user}
	}
	return probe.Login{Krb5Conf: s.KDC.Krb5Conf(), Keytab: s.KDC.Keytab(user), Principal: user, Realm: kdc.Realm}
}

// Folder is the folder of a cluster.
type Folder string

func (f Folder) startLock() string { return filepath.Join(string(f), "start.lock") }
func (f Folder) leaseLock() string { return filepath.Join(string(f), "lease.lock") }
func (f Folder) aliveLock() string { return filepath.Join(string(f), "alive.lock") }
func (f Folder) cluster() string   { return filepath.Join(string(f), "cluster") }
func (f Folder) stateFile() string { return filepath.Join(f.cluster(), "state.json") }
func (f Folder) specFile() string  { return filepath.Join(f.cluster(), "spec.json") }
func (f Folder) log() string       { return filepath.Join(f.cluster(), "supervisor.log") }
func (f Folder) socket() string    { return filepath.Join(f.cluster(), "control") }

// Check finds out early what would fail late: the system's limit on the names of sockets.
func (f Folder) Check() error {
	const limit = 103 // macOS; Linux has 107
	if n := len(f.socket()); n > limit {
		return fmt.Errorf("the folder's name %s is %d bytes too long", f, n-limit)
	}
	if !filepath.IsAbs(string(f)) {
		return fmt.Errorf("the folder's name %s is not absolute", f)
	}
	return nil
}

// State reads the state as it was after the last change.
func (f Folder) State() (State, error) {
	var s State
	return s, readJSON(f.stateFile(), &s)
}

func readJSON(name string, into any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// writeJSON replaces the file, so that readers see the old or the new content.
func writeJSON(name string, content any) error {
	b, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	tmp := name + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

// remove removes all that is there. Whoever waits for a lock may create its file again at the same time; then the folder
// stays, with nothing but that.
func (f Folder) remove() error {
	err := os.RemoveAll(f.cluster())
	for _, lock := range []string{f.leaseLock(), f.startLock(), f.aliveLock()} {
		if e := os.Remove(lock); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	_ = os.Remove(string(f))
	return err
}
