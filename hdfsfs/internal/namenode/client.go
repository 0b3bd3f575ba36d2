package namenode

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// Options of a Client. The zero value of a field is its documented default.
type Options struct {
	// RPC says where the NameNodes are, who calls, and how long things may take. Protocol and Plan are set by this package.
	RPC rpc.Options
	// Policy says how calls are repeated.
	Policy Policy
	// Name is who holds the leases of open files. No two clients may have the same; empty is a random one.
	Name string
	// RenewInterval is how often leases are renewed while files are open; 0 is 30 s. A lease that was not renewed for 60 s may be
	// taken over.
	RenewInterval time.Duration
	// DefaultsFor is how long the server's defaults are kept; 0 is one hour.
	DefaultsFor time.Duration
}

// Client calls the NameNodes of one nameservice.
type Client struct {
	rpc    *rpc.Client
	name   string
	leases *leases

	defaults struct {
		sync.Mutex
		value   *wire.FsServerDefaults
		expires time.Time
	}
	defaultsFor time.Duration
}

// New checks the options and returns a Client. Nothing is connected before the first call.
func New(o Options) (*Client, error) {
	var problems []error
	for name, d := range map[string]time.Duration{
		"RenewInterval": o.RenewInterval, "DefaultsFor": o.DefaultsFor,
		"Policy.Base": o.Policy.Base, "Policy.Max": o.Policy.Max, "Policy.ConnectFor": o.Policy.ConnectFor, "Policy.ReportsFor": o.Policy.ReportsFor,
	} {
		if d < 0 {
			problems = append(problems, fmt.Errorf("option %s: %v is negative", name, d))
		}
	}
	if o.RenewInterval == 0 {
		o.RenewInterval = 30 * time.Second
	}
	if o.DefaultsFor == 0 {
		o.DefaultsFor = time.Hour
	}
	if o.Name == "" {
		o.Name = randomName()
	}
	o.RPC.Protocol, o.RPC.Plan = rpc.ClientProtocol, o.Policy.Decide
	client, err := rpc.New(o.RPC)
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	c := &Client{rpc: client, name: o.Name, defaultsFor: o.DefaultsFor}
	c.leases = newLeases(o.RenewInterval, c.RenewLease)
	return c, nil
}

// randomName has the form of Hadoop's: what it runs in, a random number, a thread.
func randomName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("DFSClient_NONMAPREDUCE_%d_1", binary.BigEndian.Uint64(b[:])>>1)
}

// Name is who holds the leases of files that this client has open, also in the headers of block operations.
func (c *Client) Name() string { return c.name }

// Close ends all calls and the renewal of leases, and returns when nothing of the client runs any more. Files that are open
// stay so until their leases expire. It may be called again.
func (c *Client) Close() error {
	c.leases.close()
	err := c.rpc.Close()
	c.leases.wait()
	return err
}

// call calls a method. What it means to repeat it stands in methods.
func (c *Client) call(ctx context.Context, method string, request, response proto.Message) error {
	m, ok := methods[method]
	if !ok {
		return fmt.Errorf("%w: the method %s is not in the table", errors.ErrUnsupported, method)
	}
	return c.rpc.Call(ctx, rpc.Call{Method: method, Semantics: m.semantics, LargeAnswer: m.large}, request, response)
}

// notExist is what an absent answer means.
func notExist(server, path string) error {
	return fmt.Errorf("%s: %s: %w", server, path, fs.ErrNotExist)
}
