package metadata

import (
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
)

type stateJSON struct {
	ManagedOperator     *operatorJSON `json:"managedOperator,omitempty"`
	RawOperator         *operatorJSON `json:"rawOperator,omitempty"`
	ManagedKeyed        *keyedJSON    `json:"managedKeyed,omitempty"`
	RawKeyed            *keyedJSON    `json:"rawKeyed,omitempty"`
	InputChannels       []channelJSON `json:"inputChannels,omitempty"`
	ResultSubpartitions []channelJSON `json:"resultSubpartitions,omitempty"`
}

type operatorJSON struct {
	States   []namedStateJSON `json:"states,omitempty"`
	Delegate *streamJSON      `json:"delegate"`
	Merging  *mergingJSON     `json:"merging,omitempty"`
}

type namedStateJSON struct {
	Name    textJSON `json:"name"`
	Mode    Mode     `json:"mode"`
	Offsets []int64  `json:"offsets,omitempty"`
}

type mergingJSON struct {
	TaskOwnedDir textJSON `json:"taskOwnedDir"`
	SharedDir    textJSON `json:"sharedDir"`
	Empty        bool     `json:"empty,omitempty"`
}

type channelJSON struct {
	Subtask  int32             `json:"subtask"`
	Merged   bool              `json:"merged,omitempty"`
	Size     int64             `json:"size"`
	Delegate *streamJSON       `json:"delegate"`
	Channels []channelPartJSON `json:"channels,omitempty"`
}

type channelPartJSON struct {
	Group   int32   `json:"group"`
	Index   int32   `json:"index"`
	Size    int64   `json:"size"`
	Offsets []int64 `json:"offsets,omitempty"`
}

type checksumsJSON struct {
	ChunkSize int      `json:"chunkSize"`
	Sums      []uint32 `json:"sums"`
}

// streamJSON has the members of all kinds of stream handles.
type streamJSON struct {
	Kind      string         `json:"kind"`
	Name      textJSON       `json:"name,omitempty"`
	Path      textJSON       `json:"path,omitempty"`
	Dir       textJSON       `json:"dir,omitempty"`
	Data      []byte         `json:"data,omitempty"`
	Offset    int64          `json:"offset,omitempty"`
	Size      int64          `json:"size,omitempty"`
	Scope     Scope          `json:"scope,omitempty"`
	LogicalID textJSON       `json:"logicalId,omitempty"`
	Checksums *checksumsJSON `json:"checksums,omitempty"`
	// KeyGroups is that of a handle of key groups that is nested as a stream.
	KeyGroups *keyedJSON `json:"keyGroups,omitempty"`
}

// keyedJSON has the members of all kinds of keyed handles.
type keyedJSON struct {
	Kind              string           `json:"kind"`
	KeyGroups         KeyGroupRange    `json:"keyGroups"`
	Layout            Layout           `json:"layout,omitempty"`
	ID                textJSON         `json:"id,omitempty"`
	Savepoint         bool             `json:"savepoint,omitempty"`
	Offsets           []int64          `json:"offsets,omitempty"`
	Delegate          *streamJSON      `json:"delegate,omitempty"`
	CheckpointID      int64            `json:"checkpointId,omitempty"`
	BackendID         textJSON         `json:"backendId,omitempty"`
	Size              int64            `json:"size,omitempty"`
	PersistedSize     int64            `json:"persistedSize,omitempty"`
	Meta              *streamJSON      `json:"meta,omitempty"`
	Shared            []namedFileJSON  `json:"shared,omitempty"`
	Private           []namedFileJSON  `json:"private,omitempty"`
	MaterializationID int64            `json:"materializationId,omitempty"`
	Materialized      []*keyedJSON     `json:"materialized,omitempty"`
	NonMaterialized   []*keyedJSON     `json:"nonMaterialized,omitempty"`
	From              int64            `json:"from,omitempty"`
	To                int64            `json:"to,omitempty"`
	Changes           []changeJSON     `json:"changes,omitempty"`
	Parts             []changePartJSON `json:"parts,omitempty"`
	Storage           textJSON         `json:"storage,omitempty"`
}

type namedFileJSON struct {
	LocalPath textJSON    `json:"localPath"`
	Handle    *streamJSON `json:"handle"`
}

type changeJSON struct {
	KeyGroup int32  `json:"keyGroup"`
	Data     []byte `json:"data,omitempty"`
}

type changePartJSON struct {
	Offset int64       `json:"offset"`
	Handle *streamJSON `json:"handle"`
}

// The texts of modes and layouts.
var (
	modeNames   = []string{SplitDistribute: SplitDistribute.String(), Union: Union.String(), Broadcast: Broadcast.String()}
	layoutNames = []string{LayoutCurrent: "current", LayoutV1: "v1", Layout114: "flink-1.14"}
)

// MarshalText implements [encoding.TextMarshaler].
func (m Mode) MarshalText() ([]byte, error) { return nameOf(modeNames, m) }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Mode) UnmarshalText(text []byte) error { return valueOf(modeNames, text, m) }

// String returns "current", "v1" or "flink-1.14".
func (l Layout) String() string {
	name, err := nameOf(layoutNames, l)
	if err != nil {
		return "invalid"
	}
	return string(name)
}

// MarshalText implements [encoding.TextMarshaler].
func (l Layout) MarshalText() ([]byte, error) { return nameOf(layoutNames, l) }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *Layout) UnmarshalText(text []byte) error { return valueOf(layoutNames, text, l) }

func nameOf[T ~uint8](names []string, v T) ([]byte, error) {
	if int(v) >= len(names) {
		return nil, invalid("there is no %T %d", v, v)
	}
	return []byte(names[v]), nil
}

func valueOf[T ~uint8](names []string, text []byte, v *T) error {
	for i, name := range names {
		if name == string(text) {
			*v = T(i)
			return nil
		}
	}
	return fmt.Errorf("%w: there is no %T %.100q", core.ErrCorrupt, *v, text)
}
