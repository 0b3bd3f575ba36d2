package report

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// StateHealth sums up a store by the names of its files. The values are part of the JSON interface.
type StateHealth string

// The health of a store.
const (
	StateReady      StateHealth = "ready"      // the version that the query would begin with can be loaded
	StateIncomplete StateHealth = "incomplete" // it cannot
	StateMissing    StateHealth = "missing"    // the store belongs to the operator and it is not there
	StateEmpty      StateHealth = "empty"      // there is no version, and none was committed
)

// StateListing is the result of state ls.
type StateListing struct {
	Checkpoint string  `json:"checkpoint"`
	QueryID    *string `json:"query_id"`
	// LastOffset and LastCommit are the newest batches that were begun and done, null without them.
	LastOffset *int64 `json:"last_offset"`
	LastCommit *int64 `json:"last_commit"`
	Pins       Pinned `json:"pinned"`
	// Stores are sorted by operator, partition and name.
	Stores []StateStore `json:"stores"`
}

// Pinned is what the offset log pins a query to; null is what it does not tell.
type Pinned struct {
	Provider    *string `json:"provider"`
	Compression *string `json:"compression"`
	RowChecksum *bool   `json:"row_checksum"`
	Partitions  *int64  `json:"partitions"`
}

// StateID names a store.
type StateID struct {
	Operator  int64  `json:"operator"`
	Name      string `json:"operator_name,omitempty"`
	Partition int64  `json:"partition"`
	Store     string `json:"store"`
}

// String returns the store in words.
func (id StateID) String() string {
	return fmt.Sprintf("operator %d partition %d store %s", id.Operator, id.Partition, id.Store)
}

// StateStore is a line of a listing.
type StateStore struct {
	StateID
	Health   StateHealth `json:"health"`
	Provider string      `json:"provider"`
	// Lowest and Highest are null if there is no version.
	Lowest  *int64 `json:"lowest_version"`
	Highest *int64 `json:"highest_version"`
	// Begin is the version that the query would begin with, null if there is none.
	Begin     *int64 `json:"committed_version"`
	Versions  int    `json:"versions"`
	Loadable  int    `json:"loadable"`
	Snapshots int    `json:"snapshots"`
	Files     int    `json:"files"`
	Bytes     int64  `json:"bytes"`
}

// StateInfo is the result of state info.
type StateInfo struct {
	Checkpoint string `json:"checkpoint"`
	StateStore
	Directory string `json:"directory"`
	// Compression is what its files are compressed with, null if it has none; RowChecksum null if no file and no log tells.
	Compression *string `json:"compression"`
	RowChecksum *bool   `json:"row_checksum"`
	Pins        Pinned  `json:"pinned"`
	// Chain is how many deltas or changelogs are replayed for the highest version, null if it cannot be loaded.
	Chain         *int           `json:"chain_length"`
	SchemaVersion int            `json:"schema_version"`
	Schemas       []StateSchema  `json:"schemas"`
	List          []StateVersion `json:"version_list"`
	// Foreign are names that belong to no version.
	Foreign  []string       `json:"foreign"`
	Findings []StateFinding `json:"findings"`
}

// StateSchema is what a store's rows are made of.
type StateSchema struct {
	Family string          `json:"family,omitempty"`
	Key    json.RawMessage `json:"key"`
	Value  json.RawMessage `json:"value"`
}

// StateVersion is a version of a store.
type StateVersion struct {
	Version  int64     `json:"version"`
	ID       string    `json:"checkpoint_id,omitempty"`
	Time     time.Time `json:"time"`
	Loadable bool      `json:"loadable"`
	// Delta is the size of the delta or changelog, Snapshot that of the snapshot; null where there is none.
	Delta    *int64 `json:"delta_bytes"`
	Snapshot *int64 `json:"snapshot_bytes"`
	// Footer: every file of the version has the footer of this project.
	Footer bool `json:"footer"`
}

// StateFinding is something wrong with a store.
type StateFinding struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Path     string `json:"path"`
	Message  string `json:"message"`
	Advice   string `json:"advice"`
}

// Hex is a byte string that JSON shows in hexadecimal digits.
type Hex []byte

// MarshalJSON implements json.Marshaler; nil is null.
func (h Hex) MarshalJSON() ([]byte, error) {
	if h == nil {
		return []byte("null"), nil
	}
	return json.Marshal(hex.EncodeToString(h))
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hex) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		*h = nil
		return err
	}
	b, err := hex.DecodeString(*text)
	*h = b
	return err
}

// StateEntry is a row.
type StateEntry struct {
	Key   Hex `json:"key"`
	Value Hex `json:"value"`
}

// StateView names a version of a store that was read.
type StateView struct {
	StateID
	Version int64  `json:"version"`
	ID      string `json:"checkpoint_id,omitempty"`
}

// StateDump is the result of state dump, and of state get with one entry.
type StateDump struct {
	Checkpoint string `json:"checkpoint"`
	StateView
	Entries []StateEntry `json:"entries"`
}

// StateDiff is the result of state diff.
type StateDiff struct {
	Checkpoint string `json:"checkpoint"`
	StateID
	From    StateView         `json:"from"`
	To      StateView         `json:"to"`
	Added   int               `json:"added"`
	Removed int               `json:"removed"`
	Changed int               `json:"changed"`
	Equal   int               `json:"equal"`
	Entries []StateDifference `json:"differences"`
}

// StateDifference is a key that differs; From is null for one that was added, To for one that was removed.
type StateDifference struct {
	Key  Hex `json:"key"`
	From Hex `json:"from"`
	To   Hex `json:"to"`
}

// StateHistory is the result of state history.
type StateHistory struct {
	Checkpoint string `json:"checkpoint"`
	StateID
	Key    Hex          `json:"key"`
	Events []StateEvent `json:"events"`
}

// StateEvent is a version in a history. Counts are null where they are not known.
type StateEvent struct {
	Version  int64     `json:"version"`
	ID       string    `json:"checkpoint_id,omitempty"`
	Time     time.Time `json:"time"`
	Puts     *int64    `json:"puts"`
	Removals *int64    `json:"removals"`
	Merges   *int64    `json:"merges"`
	Keys     *int64    `json:"keys"`
	Delta    *int64    `json:"delta_bytes"`
	Snapshot *int64    `json:"snapshot_bytes"`
	// Change and Value are those of the key, if one was asked for.
	Change  string   `json:"change,omitempty"`
	Value   Hex      `json:"value"`
	Problem *Problem `json:"problem,omitempty"`
}

// StateVerification is the result of state verify.
type StateVerification struct {
	Checkpoint string          `json:"checkpoint"`
	Stores     []StateVerified `json:"stores"`
	// Findings are those about the checkpoint itself.
	Findings []StateFinding `json:"findings"`
}

// StateVerified is what verify found out about one store.
type StateVerified struct {
	StateID
	Verdict  Verdict `json:"verdict"`
	Versions int     `json:"versions"`
	Loadable int     `json:"loadable"`
	Files    int     `json:"files"`
	Bytes    int64   `json:"bytes"`
	// WithoutChecksum counts files in which a flipped bit may go unnoticed.
	WithoutChecksum int            `json:"files_without_checksum"`
	Findings        []StateFinding `json:"findings"`
}

// StateVerdict decides by the severities of findings.
func StateVerdict(findings []StateFinding) Verdict {
	verdict := Sound
	for _, f := range findings {
		switch {
		case f.Severity == "damage":
			return Unsound
		case f.Severity == "unclear":
			verdict = Unknown
		}
	}
	return verdict
}

// ExitCode of a verification.
func (v *StateVerification) ExitCode() int {
	verdicts := []Verdict{StateVerdict(v.Findings)}
	for _, s := range v.Stores {
		verdicts = append(verdicts, s.Verdict)
	}
	code := ExitOK
	for _, verdict := range verdicts {
		switch verdict {
		case Unsound:
			return ExitFindings
		case Unknown:
			code = ExitEnvironment
		}
	}
	return code
}

// StateWork is the result of state compact, repair and rollback.
type StateWork struct {
	Checkpoint string           `json:"checkpoint"`
	DryRun     bool             `json:"dry_run"`
	Stores     []StateStoreWork `json:"stores"`
}

// WorkStatus says how far the work on a store came. The values are part of the JSON interface.
type WorkStatus string

// The states of work.
const (
	WorkPlanned WorkStatus = "planned" // a dry run
	WorkDone    WorkStatus = "done"
	WorkNothing WorkStatus = "nothing"     // there is nothing to do
	WorkRefused WorkStatus = "refused"     // it was not begun
	WorkFailed  WorkStatus = "failed"      // it was begun, and may be done in part
	WorkPending WorkStatus = "not_reached" // work on an earlier store failed
)

// StateStoreWork is the work on one store.
type StateStoreWork struct {
	StateID
	Version int64      `json:"version"`
	Status  WorkStatus `json:"status"`
	// Steps are the plan, in order.
	Steps []StateStep `json:"steps"`
}

// StateStep is one thing that a writing verb does.
type StateStep struct {
	Do   string `json:"do"`
	Path string `json:"path"`
	// Reason says why, where that is not plain.
	Reason string `json:"reason,omitempty"`
}
