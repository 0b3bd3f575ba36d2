package coordinator

import (
	"context"
	"fmt"
	"io/fs"
)

// News says what became of a checkpoint.
type News uint8

const (
	// NewsCommitted: it is durable. Its shared states may be referred to by the checkpoints whose trigger names it as base.
	NewsCommitted News = iota
	// NewsAborted: it does not exist and never will. What was written for it can go.
	NewsAborted
	// NewsSubsumed: it was committed before, and is deleted because newer ones are retained.
	NewsSubsumed
)

var newsNames = [...]string{NewsCommitted: "committed", NewsAborted: "aborted", NewsSubsumed: "subsumed"}

// String returns the news in lower case.
func (n News) String() string {
	if int(n) >= len(newsNames) {
		return "invalid"
	}
	return newsNames[n]
}

// MarshalText implements encoding.TextMarshaler with the text of String.
func (n News) MarshalText() ([]byte, error) {
	if n > NewsSubsumed {
		return nil, fmt.Errorf("%w: news %d", fs.ErrInvalid, n)
	}
	return []byte(n.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *News) UnmarshalText(text []byte) error {
	for known, name := range newsNames {
		if string(text) == name {
			*n = News(known)
			return nil
		}
	}
	return fmt.Errorf("%w: news %q", fs.ErrInvalid, text)
}

// Notice tells workers what became of a checkpoint, see Options.Notify. Its binary form is that of [Notice.MarshalBinary]; it also
// has a JSON form.
type Notice struct {
	CheckpointID int64 `json:"checkpointId"`
	// Epoch of the coordinator that reports it. An id may be used again in a later one.
	Epoch uint64 `json:"epoch"`
	Kind  Kind   `json:"kind"`
	News  News   `json:"news"`
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (n Notice) MarshalBinary() ([]byte, error) {
	if n.Kind > Savepoint || n.News > NewsSubsumed {
		return nil, fmt.Errorf("%w: notice of kind %d with news %d", fs.ErrInvalid, n.Kind, n.News)
	}
	return endMessage(append(beginMessage(whatNotice, n.CheckpointID, n.Epoch), byte(n.Kind), byte(n.News))), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. The error is core.ErrCorrupt or core.ErrUnsupportedVersion.
func (n *Notice) UnmarshalBinary(data []byte) error {
	m, err := openMessage(data, whatNotice)
	if err != nil {
		return err
	}
	var got Notice
	got.CheckpointID, got.Epoch = int64(m.u64()), m.u64()
	got.Kind, got.News = Kind(m.u8()), News(m.u8())
	if err := m.close(got.Kind <= Savepoint && got.News <= NewsSubsumed); err != nil {
		return err
	}
	*n = got
	return nil
}

// notify tells the workers.
func (c *Coordinator) notify(ctx context.Context, t Trigger, news News) {
	if c.opts.Notify != nil {
		c.opts.Notify(ctx, Notice{CheckpointID: t.CheckpointID, Epoch: t.Epoch, Kind: t.Kind, News: news})
	}
}
