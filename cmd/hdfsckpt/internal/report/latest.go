package report

import "time"

// Latest is the result of latest.
type Latest struct {
	Pointer string    `json:"pointer"`
	Job     string    `json:"job,omitempty"`
	ID      int64     `json:"id"`
	Time    time.Time `json:"time"`
	// Skipped are newer complete checkpoints that cannot be used, passed over as --allow-older allows.
	Skipped []Skipped `json:"skipped"`
}

// Skipped is a complete checkpoint that cannot be used.
type Skipped struct {
	Pointer string  `json:"pointer"`
	Problem Problem `json:"problem"`
}
