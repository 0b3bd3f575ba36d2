package testenv

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/hadoop"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/kdc"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/supervisor"
)

//go:embed java/pom.xml
var pom []byte

// Options say what cluster is wanted. The zero value is three DataNodes without Kerberos, shared.
type Options struct {
	// DataNodes is their number; 0 means 3.
	DataNodes int
	// Kerberos makes calls and data transfer (as Protection says) secure. The web pages stay open.
	Kerberos bool
	// Protection is dfs.data.transfer.protection with Kerberos: "authentication", "integrity" or "privacy"; empty means
	// "authentication".
	Protection string
	// TicketLifetime is that of Kerberos tickets; 0 means 10 hours.
	TicketLifetime time.Duration
	// EncryptionTypes are those that Kerberos's keys and tickets have; nil means aes256-cts-hmac-sha1-96 and
	// aes128-cts-hmac-sha1-96.
	EncryptionTypes []string
	// Properties are further ones for daemons and clients: those that begin with "dfs." go to hdfs-site.xml, others to
	// core-site.xml.
	Properties map[string]string
	// Exclusive asks for a cluster that nobody else uses, so that its daemons may be killed and stopped.
	Exclusive bool
	// StartTimeout is how long the daemons may take until they work; 0 means 3 minutes. An idle machine takes seconds.
	StartTimeout time.Duration

	linger time.Duration // of a shared cluster; 0 means defaultLinger
}

const (
	defaultLinger = 10 * time.Second // covers the gap between the test binaries of a run
	maxDataNodes  = 16
)

// withDefaults checks the options and fills in what is not given.
func (o Options) withDefaults() (Options, error) {
	var err error
	if o.DataNodes == 0 {
		o.DataNodes = 3
	}
	if o.DataNodes < 1 || o.DataNodes > maxDataNodes {
		err = errors.Join(err, fmt.Errorf("option DataNodes: %d is not in 1 to %d", o.DataNodes, maxDataNodes))
	}
	if o.Kerberos {
		err = errors.Join(err, o.secure())
	} else if o.Protection != "" || o.TicketLifetime != 0 || o.EncryptionTypes != nil {
		err = errors.Join(err, errors.New("options Protection, TicketLifetime and EncryptionTypes are for Kerberos"))
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 3 * time.Minute
	}
	if o.StartTimeout < 0 {
		err = errors.Join(err, fmt.Errorf("option StartTimeout: %v", o.StartTimeout))
	}
	if o.linger == 0 {
		o.linger = defaultLinger
	}
	return o, err
}

// secure does the same for the options of Kerberos.
func (o *Options) secure() error {
	var err error
	if o.Protection == "" {
		o.Protection = "authentication"
	}
	if !slices.Contains([]string{"authentication", "integrity", "privacy"}, o.Protection) {
		err = errors.Join(err, fmt.Errorf("option Protection: %q", o.Protection))
	}
	if o.TicketLifetime == 0 {
		o.TicketLifetime = 10 * time.Hour
	}
	if o.TicketLifetime < time.Second {
		err = errors.Join(err, fmt.Errorf("option TicketLifetime: %v is less than a second", o.TicketLifetime))
	}
	if o.EncryptionTypes == nil {
		o.EncryptionTypes = []string{"aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha1-96"}
	}
	for _, name := range o.EncryptionTypes {
		if name == "" || strings.ContainsAny(name, " \t\n:=") {
			err = errors.Join(err, fmt.Errorf("option EncryptionTypes: %q", name))
		}
	}
	return err
}

// part is what HDFSCKPT_REQUIRE calls it.
func (o Options) part() string {
	if o.Kerberos {
		return "kerberos"
	}
	return "hdfs"
}

// folder is where clusters of these options are, for all processes of the user.
func (o Options) folder() (supervisor.Folder, error) {
	o.StartTimeout = 0 // the only one that does not make another cluster
	key, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(key, pom...))
	name := fmt.Sprintf("%s-%d-%s", o.part(), o.DataNodes, hex.EncodeToString(sum[:4]))
	return supervisor.Folder(filepath.Join(os.TempDir(), fmt.Sprintf("hdfsckpt-testenv-%d", os.Getuid()), name)), nil
}

// spec prepares what a cluster is made from, and describes it.
func (o Options) spec(ctx context.Context, say func(string)) (supervisor.Spec, error) {
	cacheDir, err := cacheDir()
	if err != nil {
		return supervisor.Spec{}, err
	}
	if o.Kerberos {
		if err := kdc.Install(ctx, filepath.Join(cacheDir, "kerberos.lock"), say); err != nil {
			return supervisor.Spec{}, err
		}
	}
	train := func(p hadoop.Parts) error {
		dir, err := os.MkdirTemp("", "hdfsckpt-testenv-training-")
		if err != nil {
			return err
		}
		spec := supervisor.Spec{DataNodes: 1, Parts: p, StartTimeout: 10 * time.Minute}
		return errors.Join(supervisor.Train(ctx, dir, spec), os.RemoveAll(dir))
	}
	parts, err := hadoop.Cache{Dir: cacheDir, Pom: pom}.Prepare(ctx, say, train)
	if err != nil {
		return supervisor.Spec{}, err
	}
	s := supervisor.Spec{
		DataNodes: o.DataNodes, Kerberos: o.Kerberos, Protection: o.Protection, TicketLifetime: o.TicketLifetime,
		EncryptionTypes: o.EncryptionTypes, Properties: o.Properties, Parts: parts, Linger: o.linger, StartTimeout: o.StartTimeout,
	}
	if o.Exclusive {
		s.Linger = 0
	}
	return s, nil
}

// cacheDir is where things are kept from one run to the next.
func cacheDir() (string, error) {
	dir := os.Getenv("HDFSCKPT_CACHE")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".cache", "hdfsckpt")
	}
	return filepath.Abs(filepath.Join(dir, "testenv"))
}
