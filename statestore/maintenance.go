package statestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"time"
)

// MaintenanceOptions of background maintenance. The zero value is the documented default of every field.
type MaintenanceOptions struct {
	// Interval between rounds. 0 is 60 s, as Spark.
	Interval time.Duration
	// Workers is how many stores are worked on at once, for snapshots and for clean-up each. 0 is a quarter of the
	// processors, at least 1, as Spark.
	Workers int
	// MaxDeletes bounds the versions that a round deletes of a store whose own policy has no bound. 0 is 1000.
	MaxDeletes int
}

const (
	defaultMaintenanceInterval = time.Minute
	defaultMaxDeletes          = 1000
)

// Validate reports all problems; they are fs.ErrInvalid.
func (o MaintenanceOptions) Validate() error {
	var problems []error
	if o.Interval < 0 {
		problems = append(problems, fmt.Errorf("%w: MaintenanceOptions.Interval is %s: it must not be negative", fs.ErrInvalid, o.Interval))
	}
	if o.Workers < 0 {
		problems = append(problems, fmt.Errorf("%w: MaintenanceOptions.Workers is %d: it must not be negative", fs.ErrInvalid, o.Workers))
	}
	if o.MaxDeletes < 0 {
		problems = append(problems, fmt.Errorf("%w: MaintenanceOptions.MaxDeletes is %d: it must not be negative", fs.ErrInvalid, o.MaxDeletes))
	}
	return errors.Join(problems...)
}

// Maintenance is background maintenance that is running.
//
// Snapshots and clean-up have workers of their own, so that neither waits for the other, and commits wait for neither. What
// fails is logged by the store's logger, is in its Stats, and is tried again in the next round; other stores go on.
type Maintenance struct {
	ctx     context.Context //nolint:containedctx // ends with Stop
	stop    context.CancelFunc
	running sync.WaitGroup
}

// StartMaintenance begins maintenance of the stores that the function returns, which is asked in each round.
func StartMaintenance(stores func() []*Store, opts MaintenanceOptions) (*Maintenance, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if opts.Interval == 0 {
		opts.Interval = defaultMaintenanceInterval
	}
	if opts.Workers == 0 {
		opts.Workers = max(runtime.GOMAXPROCS(0)/4, 1)
	}
	if opts.MaxDeletes == 0 {
		opts.MaxDeletes = defaultMaxDeletes
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &Maintenance{ctx: ctx, stop: stop}
	m.running.Add(2)
	go m.rounds(ctx, stores, opts, func(s *Store) error { return s.MaintainSnapshots(ctx) })
	go m.rounds(ctx, stores, opts, func(s *Store) error {
		policy := s.opts.Cleanup
		if policy.MaxDeletes == 0 {
			policy.MaxDeletes = opts.MaxDeletes
		}
		_, err := s.cleanup(ctx, policy)
		return err
	})
	return m, nil
}

// Stop ends maintenance: what is under way is broken off, and publishes nothing. It returns when nothing runs any more.
// Calling it again is harmless.
func (m *Maintenance) Stop() {
	m.stop()
	m.running.Wait()
}

func (m *Maintenance) stopped() bool { return m.ctx.Err() != nil }

// rounds does one kind of work on all stores, in each interval.
func (m *Maintenance) rounds(ctx context.Context, stores func() []*Store, opts MaintenanceOptions, work func(*Store) error) {
	defer m.running.Done()
	ticks := time.NewTicker(opts.Interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		queue := make(chan *Store)
		var workers sync.WaitGroup
		for range opts.Workers {
			workers.Go(func() {
				for s := range queue {
					if err := work(s); err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrClosed) && !errors.Is(err, errInterrupted) {
						s.opts.Logger.WarnContext(ctx, "maintenance failed", "store", s.dir, "error", err)
					}
				}
			})
		}
		for _, s := range stores() {
			if s.opts.ReadOnly {
				continue
			}
			select {
			case queue <- s:
			case <-ctx.Done():
			}
		}
		close(queue)
		workers.Wait()
	}
}
