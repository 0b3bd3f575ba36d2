package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hdfsckpt/hdfsckpt/testenv/internal/hadoop"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/probe"
)

// Ready returns nil if all daemons that are up work together: the NameNode has left safe mode, it counts the DataNodes, each
// DataNode is registered, and a byte that is written can be read.
func (s State) Ready(ctx context.Context) error {
	up := 0
	for _, d := range s.Layout.Daemons {
		p, ok := s.Process(d.Name)
		switch {
		case !ok || !p.Up():
			if d.Kind == hadoop.NameNode {
				return errors.New("the NameNode is down")
			}
			continue
		case d.Kind == hadoop.DataNode:
			up++
			registered, err := hadoop.Registered(ctx, s.Layout.Address(d, "http"))
			if err != nil {
				return err
			}
			if !registered {
				return fmt.Errorf("%s has not registered", d.Name)
			}
		}
	}
	status, err := hadoop.NameNodeStatusOf(ctx, s.NameNodeWeb())
	switch {
	case err != nil:
		return err
	case status.SafeMode != "":
		return fmt.Errorf("the NameNode is in safe mode: %s", status.SafeMode)
	case status.Live < up:
		return fmt.Errorf("%d live DataNodes, not %d", status.Live, up)
	}
	return probe.RoundTrip(ctx, s.Layout.ConfDir("client"), s.Login())
}

// MustRun returns an error that ends a Poll if the process has ended.
func (s State) MustRun(name string) error {
	p, ok := s.Process(name)
	switch {
	case !ok:
		return final(fmt.Errorf("no process %q in this cluster", name))
	case !p.Running:
		return final(fmt.Errorf("%s ended: %s", name, tailOf(p.Log)))
	}
	return nil
}

// NameNodeWeb is the address of the NameNode's web server.
func (s State) NameNodeWeb() string { return s.Layout.Address(s.Layout.Daemons[0], "http") }

// finalError ends a poll.
type finalError struct{ error }

func (f finalError) Unwrap() error { return f.error }

func final(err error) error { return finalError{err} }

// pollInterval is how often a condition is looked at.
const pollInterval = 50 * time.Millisecond

// Poll asks until the answer is nil or the context ends; the error says what the last answer was.
func Poll(ctx context.Context, ask func() error) error { return poll(ctx, ask) }

func poll(ctx context.Context, ask func() error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := ask()
		var end finalError
		if err == nil || errors.As(err, &end) {
			return err
		}
		if last == nil || ctx.Err() == nil { // the end of the context makes answers of its own
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}
