package coordinator

import (
	"sync/atomic"
	"time"
)

// EventType says what happened.
type EventType uint8

const (
	// EventClaimed: the job directory was taken over.
	EventClaimed EventType = iota
	// EventSwept: leftovers of earlier coordinators were removed; Files is their number. Err is not nil if some remain.
	EventSwept
	// EventSkipped: a checkpoint was found damaged (Err) and is not used.
	EventSkipped
	// EventRestored: a checkpoint was restored.
	EventRestored
	// EventTriggered: a checkpoint was begun.
	EventTriggered
	// EventCommitted: a checkpoint was committed after Duration; StateSize, InlineSize and MetadataSize are set.
	EventCommitted
	// EventAborted: a checkpoint was aborted after Duration because of Err.
	EventAborted
	// EventUnsettled: the outcome of a checkpoint is not known because of Err.
	EventUnsettled
	// EventLate: an acknowledgement or decline came for a checkpoint that is not pending.
	EventLate
	// EventSubsumed: a checkpoint that is not retained any more was deleted; Files is the number of its files.
	EventSubsumed
	// EventLeftBehind: something could not be deleted because of Err. Checkpoints are tried again after the next commit; other
	// files are found by the next sweep.
	EventLeftBehind
	// EventFenced: another coordinator has taken over.
	EventFenced

	eventTypes
)

// Event is something that happened to a coordinator. Fields that have no meaning for the type are zero.
type Event struct {
	Type         EventType
	CheckpointID int64
	Kind         Kind
	Duration     time.Duration
	StateSize    int64
	InlineSize   int64
	MetadataSize int64
	Files        int
	Err          error
}

// Observer receives the events of a coordinator as they happen, from several goroutines. It must be quick, must not block,
// and must not call the coordinator.
type Observer interface {
	Observe(event Event)
}

// Counters is an [Observer] that counts. The zero value is ready; one may serve several coordinators.
type Counters struct {
	events    [eventTypes]atomic.Int64
	stateSize atomic.Int64
	duration  atomic.Int64
	lastID    atomic.Int64
}

// Observe implements Observer.
func (c *Counters) Observe(event Event) {
	if event.Type >= eventTypes {
		return
	}
	c.events[event.Type].Add(1)
	if event.Type == EventCommitted {
		c.stateSize.Store(event.StateSize)
		c.duration.Store(int64(event.Duration))
		c.lastID.Store(event.CheckpointID)
	}
}

// Count returns how many events of a type there were.
func (c *Counters) Count(t EventType) int64 {
	if t >= eventTypes {
		return 0
	}
	return c.events[t].Load()
}

// LastCommitted returns id, state size and duration of the checkpoint or savepoint that was committed last; zeros for none.
// The three are read one by one: during a commit they may belong to two checkpoints.
func (c *Counters) LastCommitted() (id, stateSize int64, duration time.Duration) {
	return c.lastID.Load(), c.stateSize.Load(), time.Duration(c.duration.Load())
}
