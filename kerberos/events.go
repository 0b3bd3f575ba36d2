package kerberos

import (
	"context"
	"log/slog"
	"time"
)

// EventKind says what happened.
type EventKind string

// What happens to a session.
const (
	// EventLogin: a new ticket, from the KDC or from the credential cache.
	EventLogin EventKind = "login"
	// EventRenewal: the ticket was renewed.
	EventRenewal EventKind = "renewal"
	// EventExpiry: the ticket came to its end without another one.
	EventExpiry EventKind = "expiry"
	// EventFailure: a login or a renewal failed. The ticket of before may still be good until Expires.
	EventFailure EventKind = "failure"
)

// Event is something that happened to a session.
type Event struct {
	Kind      EventKind
	Time      time.Time // by Options.Now
	Principal string    // with realm
	// Expires and RenewUntil are those of the ticket that the session has now; zero without a ticket, or if it cannot be renewed.
	Expires, RenewUntil time.Time
	Err                 error // of a failure or an expiry; it holds no secrets
}

// emit tells the hook and the log.
func (o *Options) emit(e Event, returned bool) {
	if o.Events != nil {
		o.Events(e)
	}
	if o.Logger == nil || returned {
		return
	}
	level, attrs := slog.LevelInfo, []slog.Attr{slog.String("principal", e.Principal), slog.Time("expires", e.Expires)}
	if e.Err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	o.Logger.LogAttrs(context.Background(), level, "kerberos "+string(e.Kind), attrs...)
}
