package namenode

import (
	"strings"
	"time"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
)

// Policy says for how long, and at what pace, a call is repeated that was not answered, or that was answered with the advice to
// come again. Its zero value is its documented default.
type Policy struct {
	// RetryFor is how long after its first failure a call is repeated; 0 is 10 minutes, about as long as Hadoop's retry
	// policy waits where it is enabled, negative is not at all. The context of the call ends it too.
	RetryFor time.Duration
	// ConnectFor is the same for a client that no server has ever answered, whose addresses may be wrong; 0 is 10 s.
	ConnectFor time.Duration
	// ReportsFor is the same for a new block while too few DataNodes have reported the one before; 0 is 30 s.
	ReportsFor time.Duration
	// Base and Max are the first wait between repetitions and the longest; each wait is twice the last one. 0 is 500 ms and 15 s.
	// Waits are spread by half. For the only server there is, to be back or to be ready, and for the end of safe mode, no wait is
	// longer than 1 s.
	Base, Max time.Duration
}

const (
	// knock is how often Hadoop's client knocks at the door of a server that is away, if there is no other.
	knock = time.Second
	// soon is the first wait where DataNodes' reports are milliseconds away, soonMax the longest.
	soon    = 5 * time.Millisecond
	soonMax = time.Second
	// maxRestarts is how often a create is begun anew that ran into a change of encryption zones.
	maxRestarts = 10
)

func (p Policy) withDefaults() Policy {
	for d, fallback := range map[*time.Duration]time.Duration{
		&p.RetryFor: 10 * time.Minute, &p.ConnectFor: 10 * time.Second, &p.ReportsFor: 30 * time.Second,
		&p.Base: 500 * time.Millisecond, &p.Max: 15 * time.Second,
	} {
		if *d == 0 {
			*d = fallback
		}
	}
	return p
}

// Decide is a rpc.Plan. It decides by what failed:
//
//	no connection        one server: again after a wait; several: the next one, without a wait until all were tried
//	lost answer          the same server at once, since servers close idle connections; then as without connection,
//	                     and so at once if the server was silent for the time of a call
//	StandbyException     the next server, as above
//	RetriableException,  the same server, after a wait: a short one where it is the only one, or in safe mode, whose refusals
//	SafeModeException    cost it nothing; the others may mean that it has too much to do
//	NotReplicatedYet…    the same server, after a short wait
//	anything else        the caller's business
//
// Nothing is decided by whether a call is idempotent: with the ids of client and call unchanged, all calls of the protocol can
// be repeated.
func (p Policy) Decide(f rpc.Failure) rpc.Decision {
	p = p.withDefaults()
	limit := p.RetryFor
	if !f.Connected {
		limit = min(limit, p.ConnectFor)
	}
	if f.Elapsed >= limit || f.NoSuchHost && !f.Connected && f.Servers <= 1 {
		return rpc.Decision{Action: rpc.GiveUp}
	}
	switch f.Cause {
	case rpc.NoConnection:
		return p.elsewhere(f)
	case rpc.Lost:
		if f.Attempts == 1 && !f.Silent {
			return rpc.Decision{Action: rpc.Repeat}
		}
		return p.elsewhere(f)
	case rpc.Answered:
		return p.answered(f)
	default:
		return rpc.Decision{Action: rpc.GiveUp}
	}
}

// elsewhere goes on to another server, if there is one.
func (p Policy) elsewhere(f rpc.Failure) rpc.Decision {
	switch {
	case f.Servers <= 1:
		return rpc.Decision{Action: rpc.Repeat, Wait: doubled(p.Base, min(p.Max, knock), f.Attempts-1)}
	case f.Failovers < f.Servers-1:
		return rpc.Decision{Action: rpc.FailOver}
	}
	return rpc.Decision{Action: rpc.FailOver, Wait: doubled(p.Base, p.Max, f.Failovers-f.Servers+1)}
}

func (p Policy) answered(f rpc.Failure) rpc.Decision {
	switch short(f.Class) {
	case "StandbyException", "ObserverRetryOnActiveException":
		return p.elsewhere(f)
	case "SafeModeException":
		return rpc.Decision{Action: rpc.Repeat, Wait: doubled(p.Base, min(p.Max, knock), f.Attempts-1)}
	case "RetriableException":
		longest := p.Max
		if f.Servers <= 1 {
			longest = min(longest, knock)
		}
		return rpc.Decision{Action: rpc.Repeat, Wait: doubled(p.Base, longest, f.Attempts-1)}
	case "NotReplicatedYetException":
		if f.Elapsed >= p.ReportsFor {
			return rpc.Decision{Action: rpc.GiveUp}
		}
		return rpc.Decision{Action: rpc.Repeat, Wait: doubled(soon, soonMax, f.Attempts-1)}
	case "RetryStartFileException":
		if f.Attempts <= maxRestarts {
			return rpc.Decision{Action: rpc.Repeat}
		}
	}
	return rpc.Decision{Action: rpc.GiveUp}
}

// short is the last part of the name of a class.
func short(class string) string { return class[strings.LastIndexAny(class, ".$")+1:] }

// doubled is first, doubled n times, and at most longest.
func doubled(first, longest time.Duration, n int) time.Duration {
	for ; n > 0 && first < longest; n-- {
		first *= 2
	}
	return min(first, longest)
}
