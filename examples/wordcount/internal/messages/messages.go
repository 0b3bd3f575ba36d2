// Package messages holds what the job and its workers say to each other beside the messages of package coordinator.
package messages

import (
	"encoding/json"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
	"github.com/hdfsckpt/hdfsckpt/examples/wordcount/internal/transport"
)

// Hello is the first message of a worker.
type Hello struct {
	Token string `json:"token"`
	Index int    `json:"index"`
}

// Assign tells a worker what it is and where it begins.
type Assign struct {
	Index       int        `json:"index"`
	Parallelism int        `json:"parallelism"`
	Base        string     `json:"base"` // directory of the checkpoint storage, a URL or a path
	Job         core.JobID `json:"job"`
	Input       Input      `json:"input"`
	Position    int64      `json:"position"` // chunks that are counted already
	// State holds the key groups of the worker as the restored checkpoint has them.
	State []metadata.SubtaskState `json:"state,omitempty"`
}

// Input says what is counted.
type Input struct {
	Root        string `json:"root"`
	ChunkBytes  int64  `json:"chunkBytes"`
	Fingerprint string `json:"fingerprint"`
}

// Advance allows the worker to count the chunks below Limit. A Trigger asks for the state at the limit that was given last.
type Advance struct {
	Limit int64 `json:"limit"`
}

// Progress is how many chunks a worker has counted.
type Progress struct {
	Position int64 `json:"position"`
}

// Send sends a message as JSON.
func Send(conn *transport.Conn, t transport.Type, message any) error {
	payload, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message %d: %w", t, err)
	}
	return conn.Send(t, payload)
}

// Decode parses the JSON of a message.
func Decode[T any](payload []byte) (T, error) {
	var message T
	if err := json.Unmarshal(payload, &message); err != nil {
		return message, fmt.Errorf("decode %T: %w", message, err)
	}
	return message, nil
}
