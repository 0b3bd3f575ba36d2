package kerberos

import "time"

// need says whether another ticket is wanted.
type need int

const (
	fresh  need = iota
	better      // the ticket is good, but should be replaced
	must        // there is no ticket that can be used
)

// facts are what a decision is made from.
type facts struct {
	now        time.Time
	start, end time.Time // of the ticket; zero without one
	changed    bool      // the keytab or credential cache is another one than that of the last attempt
	retryAt    time.Time // after a failure; zero without one
}

const (
	maxMargin  = 10 * time.Second
	minBackoff = time.Second
	maxBackoff = time.Minute
)

// decide is the whole policy of AffirmLogin.
func decide(f facts) need {
	switch {
	case f.end.IsZero() || !f.now.Before(f.end.Add(-margin(f.start, f.end))):
		return must
	case f.changed:
		return better
	case f.now.Before(refreshAt(f.start, f.end)) || f.now.Before(f.retryAt):
		return fresh
	}
	return better
}

// refreshAt is when four fifths of a ticket's life are over. The library on its own renews in the last sixth.
func refreshAt(start, end time.Time) time.Time { return start.Add(end.Sub(start) / 5 * 4) }

// margin is how long before its end a ticket is not used any more: a connection that is begun now needs it a little longer.
func margin(start, end time.Time) time.Duration { return min(maxMargin, end.Sub(start)/20) }

// renewable reports whether a renewal would give a ticket that lives longer than this one by a fifth of its life at least;
// else a new login is the better way.
func renewable(now, start, end, renewTill time.Time) bool {
	return now.Before(end) && renewTill.Sub(end) >= end.Sub(start)/5 && renewTill.After(end)
}

// backoff is the pause after the n-th failure in a row (from 1), so that a dead KDC does not hold up each new connection while
// the ticket is good.
func backoff(n int) time.Duration {
	d := minBackoff
	for range n - 1 {
		if d *= 2; d >= maxBackoff {
			return maxBackoff
		}
	}
	return d
}
