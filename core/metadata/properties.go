package metadata

// Properties say what Flink does with a checkpoint when the job ends, and which kind of snapshot it is.
type Properties struct {
	// Null: the file has a null where the properties should be. Nothing else is set then.
	Null bool

	// Forced: the snapshot was taken regardless of limits on concurrent ones.
	Forced bool
	// Unclaimed: the snapshot was restored from and belongs to another job.
	Unclaimed bool

	// The Discard… fields tell at which events Flink deletes the checkpoint.
	DiscardSubsumed  bool
	DiscardFinished  bool
	DiscardCancelled bool
	DiscardFailed    bool
	DiscardSuspended bool

	Type SnapshotType

	// read is not nil for properties that were parsed. As long as nothing was changed the same bytes are written again.
	read *readProperties
}

type readProperties struct {
	raw    []byte
	values Properties
}

// SnapshotType is the kind of a snapshot, in Flink's own words.
type SnapshotType struct {
	// Class is the Java class, [CheckpointClass] or [SavepointClass] so far; "" for null.
	Class string
	// Name such as "Checkpoint", "Full Checkpoint", "Savepoint", "Suspend Savepoint" or "Terminate Savepoint".
	Name string
	// Sharing says which files a checkpoint may share: "FORWARD_BACKWARD" or "FORWARD". Savepoints have none.
	Sharing string
	// Format of a savepoint: "CANONICAL" or "NATIVE".
	Format string
	// Action after a savepoint: "NONE", "SUSPEND" or "TERMINATE".
	Action string
}

// The Java classes of snapshot types.
const (
	CheckpointClass = "org.apache.flink.runtime.checkpoint.CheckpointType"
	SavepointClass  = "org.apache.flink.runtime.checkpoint.SavepointType"
)

// Retention says when Flink keeps a checkpoint although its job has ended.
type Retention uint8

// The retentions that Flink can be configured with.
const (
	// RetainNever deletes the checkpoint in any case.
	RetainNever Retention = iota
	// RetainOnFailure keeps it when the job fails.
	RetainOnFailure
	// RetainOnCancellation keeps it when the job fails, is cancelled or suspended.
	RetainOnCancellation
)

// CheckpointProperties returns what Flink records for a periodic checkpoint.
func CheckpointProperties(retention Retention) *Properties {
	return &Properties{
		DiscardSubsumed:  true,
		DiscardFinished:  true,
		DiscardCancelled: retention < RetainOnCancellation,
		DiscardFailed:    retention == RetainNever,
		DiscardSuspended: retention < RetainOnCancellation,
		Type:             SnapshotType{Class: CheckpointClass, Name: "Checkpoint", Sharing: "FORWARD_BACKWARD"},
	}
}

// SavepointProperties returns what Flink records for a savepoint that a user asked for. Without native its format is the
// canonical one.
func SavepointProperties(native bool) *Properties {
	format := "CANONICAL"
	if native {
		format = "NATIVE"
	}
	return &Properties{
		Forced: true,
		Type:   SnapshotType{Class: SavepointClass, Name: "Savepoint", Format: format, Action: "NONE"},
	}
}

// IsSavepoint reports whether the snapshot is a savepoint.
func (p *Properties) IsSavepoint() bool { return p != nil && p.Type.Class == SavepointClass }

// unchanged returns the bytes that the properties were read from, if they still say the same.
func (p *Properties) unchanged() ([]byte, bool) {
	if p.read == nil {
		return nil, false
	}
	now := *p
	now.read = nil
	return p.read.raw, now == p.read.values
}
