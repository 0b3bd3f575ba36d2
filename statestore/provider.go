package statestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// StoreID names a store below a root: a stream operator's state in one partition. An operator may have several by name.
type StoreID struct {
	Operator  int64
	Partition int64
	// Name is DefaultStore unless the operator has several.
	Name string
}

// Provider is the stores below one root, which Spark calls <checkpoint>/state, with one memory budget and one maintenance.
// All methods are safe for concurrent use.
type Provider struct {
	fsys core.FileSystem
	root string
	opts Options

	mu          sync.Mutex
	closed      bool
	stores      map[string]*Store // by directory
	maintenance *Maintenance
}

// NewProvider returns a provider without stores. It touches nothing.
func NewProvider(fsys core.FileSystem, root string, opts Options) (*Provider, error) {
	if err := opts.Validate(); err != nil {
		return nil, core.PathError("open", root, err)
	}
	if err := opts.suits(fsys); err != nil {
		return nil, core.PathError("open", root, err)
	}
	if err := core.CheckName("open", "/", root); err != nil {
		return nil, err
	}
	return &Provider{fsys: fsys, root: root, opts: opts.withDefaultBudget(), stores: map[string]*Store{}}, nil
}

func (o Options) withDefaultBudget() Options {
	if o.Budget == nil {
		o.Budget = NewBudget(BudgetOptions{})
	}
	return o
}

// Open returns a store, always the same for one id until it is closed.
func (p *Provider) Open(ctx context.Context, id StoreID) (*Store, error) {
	dir, err := StoreDir(p.root, id.Operator, id.Partition, id.Name)
	if err != nil {
		return nil, core.PathError("open", p.root, err)
	}
	if s, err := p.find(dir); s != nil || err != nil {
		return s, err
	}
	s, err := Open(ctx, p.fsys, dir, p.opts)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, core.PathError("open", dir, fs.ErrClosed)
	}
	if first := p.stores[dir]; first != nil && !first.ops.ended() {
		return first, nil // opened at the same time; the other was not used
	}
	p.stores[dir] = s
	return s, nil
}

func (p *Provider) find(dir string) (*Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, core.PathError("open", dir, fs.ErrClosed)
	}
	if s := p.stores[dir]; s != nil && !s.ops.ended() {
		return s, nil
	}
	return nil, nil
}

// Stores returns the stores that are open.
func (p *Provider) Stores() []*Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	var stores []*Store
	for dir, s := range p.stores {
		if s.ops.ended() {
			delete(p.stores, dir)
			continue
		}
		stores = append(stores, s)
	}
	return stores
}

// Budget returns the memory budget of the stores.
func (p *Provider) Budget() *Budget { return p.opts.Budget }

// StartMaintenance begins background maintenance of all stores that are open, now and later. It runs until Close, or until
// it is stopped. A second call while it runs is fs.ErrExist.
func (p *Provider) StartMaintenance(opts MaintenanceOptions) (*Maintenance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, core.PathError("maintain", p.root, fs.ErrClosed)
	case p.maintenance != nil && !p.maintenance.stopped():
		return nil, core.PathError("maintain", p.root, fmt.Errorf("%w: maintenance is running", fs.ErrExist))
	}
	m, err := StartMaintenance(p.Stores, opts)
	if err != nil {
		return nil, core.PathError("maintain", p.root, err)
	}
	p.maintenance = m
	return m, nil
}

// Close stops maintenance and closes all stores; the errors are theirs. Calling it again is harmless.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.closed = true
	m := p.maintenance
	p.mu.Unlock()
	if m != nil {
		m.Stop()
	}
	var failed []error
	for _, s := range p.Stores() {
		failed = append(failed, s.Close())
	}
	return errors.Join(failed...)
}
