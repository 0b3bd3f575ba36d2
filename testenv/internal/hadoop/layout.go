package hadoop

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// Kind is what a daemon does.
type Kind string

// The kinds of daemons.
const (
	NameNode Kind = "namenode"
	DataNode Kind = "datanode"
)

// Daemon is one JVM of a cluster.
type Daemon struct {
	Name  string         `json:"name"` // nn, dn1, dn2, …
	Kind  Kind           `json:"kind"`
	Ports map[string]int `json:"ports"` // rpc and http; or data, rpc and http
	Heap  string         `json:"heap"`
}

// Security is what the daemons have to know of Kerberos.
type Security struct {
	Realm      string            `json:"realm"`
	Superuser  string            `json:"superuser"`  // the principal, without realm, that may do anything
	Protection string            `json:"protection"` // of data transfer: authentication, integrity or privacy
	Keytabs    map[string]string `json:"keytabs"`    // of NameNodePrincipal and the other two
}

// The principals of the daemons. All addresses of a secure cluster are localhost.
const (
	NameNodePrincipal = "nn/localhost"
	DataNodePrincipal = "dn/localhost"
	WebPrincipal      = "HTTP/localhost"
)

// Layout is a cluster on paper.
type Layout struct {
	Dir     string   `json:"dir"` // all its files are below
	Daemons []Daemon `json:"daemons"`
	// ProcessUser is whom the operating system knows the daemons as: HDFS lets that user do anything.
	ProcessUser string    `json:"process_user"`
	Security    *Security `json:"security,omitempty"`
	Properties  Site      `json:"properties,omitempty"` // of the user's wish
}

// NewLayout plans a NameNode and DataNodes. port returns another free port each time.
func NewLayout(dir string, dataNodes int, port func() (int, error)) (Layout, error) {
	l := Layout{Dir: dir, Daemons: []Daemon{{Name: "nn", Kind: NameNode, Heap: "192m"}}}
	for i := range dataNodes {
		l.Daemons = append(l.Daemons, Daemon{Name: "dn" + strconv.Itoa(i+1), Kind: DataNode, Heap: "128m"})
	}
	for i, d := range l.Daemons {
		ports := map[string]int{}
		for _, use := range d.portUses() {
			p, err := port()
			if err != nil {
				return Layout{}, err
			}
			ports[use] = p
		}
		l.Daemons[i].Ports = ports
	}
	return l, nil
}

func (d Daemon) portUses() []string {
	if d.Kind == NameNode {
		return []string{"rpc", "http"}
	}
	return []string{"data", "rpc", "http"}
}

// Find returns the daemon of that name.
func (l Layout) Find(name string) (Daemon, bool) {
	for _, d := range l.Daemons {
		if d.Name == name {
			return d, true
		}
	}
	return Daemon{}, false
}

// Host is what all addresses of the cluster begin with. Kerberos wants a name.
func (l Layout) Host() string {
	if l.Security != nil {
		return "localhost"
	}
	return "127.0.0.1"
}

// Address is host:port of a daemon.
func (l Layout) Address(d Daemon, use string) string {
	return fmt.Sprintf("%s:%d", l.Host(), d.Ports[use])
}

// ConfDir is the folder with the configuration of a daemon, or of clients if the name is "client".
func (l Layout) ConfDir(name string) string { return filepath.Join(l.Dir, "conf", name) }

// DataDir is where a daemon keeps its data.
func (l Layout) DataDir(name string) string { return filepath.Join(l.Dir, "data", name) }

// LogFile is where a daemon writes what happens.
func (l Layout) LogFile(name string) string { return filepath.Join(l.Dir, "logs", name+".log") }
