package report

import "github.com/hdfsckpt/hdfsckpt/core/metadata"

// Conversion is the result of convert.
type Conversion struct {
	Pointer string `json:"pointer"`
	// Target is the file that was written, or would have been; Written tells whether it was.
	Target  string `json:"target"`
	Written bool   `json:"written"`
	Bytes   int64  `json:"bytes"`
	// FromVersion and ToVersion are those of the format.
	FromVersion int `json:"from_version"`
	ToVersion   int `json:"to_version"`
	// MadeAbsolute are the relative handles that were made absolute, since the target is in another directory; Unmerged the merged
	// channel handles that were written as those that they were merged from; Mapped the paths that --path-map changed.
	MadeAbsolute int    `json:"made_absolute"`
	Unmerged     int    `json:"unmerged"`
	Mapped       int    `json:"mapped"`
	Losses       []Loss `json:"losses"`
}

// Loss is what a version cannot hold.
type Loss struct {
	// Field is the way to the first value, Count how many there are.
	Field  string `json:"field"`
	Count  int    `json:"count"`
	Reason string `json:"reason"`
	// Unreadable: Flink refuses the file. Otherwise it reads all state.
	Unreadable bool `json:"unreadable"`
}

// NewLosses takes over what the metadata says.
func NewLosses(losses []metadata.Loss) []Loss {
	list := make([]Loss, 0, len(losses))
	for _, l := range losses {
		list = append(list, Loss{Field: l.Field, Count: l.Count, Reason: l.Reason, Unreadable: l.Unreadable})
	}
	return list
}
