package text

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

func TestInspectionShowsWhatIsOutOfTheOrdinary(t *testing.T) {
	subtask := 3
	i := &report.Inspection{
		Pointer: "file:/j/chk-1", ID: 1,
		Metadata:     report.MetadataFile{Bytes: 2048, Version: 3, Checksum: true},
		Footer:       &report.Footer{Created: time.Unix(0, 0).UTC(), Kind: "unknown", Durability: "default"},
		Properties:   &report.Properties{Null: true},
		Totals:       report.Totals{Subtasks: 2, StateBytes: 100, Inventory: report.Inventory{Objects: 3, Bytes: 50, UnknownSizes: 1, Checksummed: 2}},
		MasterStates: []report.MasterState{{Name: "hook\n", Version: 2, Bytes: 7}},
		Operators: []report.Operator{
			{
				ID: "aa", Parallelism: 4, MaxParallelism: 128, SubtasksWithState: 1, SubtasksFinished: 1, StateBytes: 100,
				States: []report.NamedState{{Name: "r", Role: report.RawOperator, Mode: "UNION", Partitions: 1}},
				Subtasks: []report.Subtask{
					{Index: 2, Finished: true},
					{Index: 3, Handles: []report.SubtaskHandle{{
						Role: report.InputChannels, Kind: "merged_channels", StateBytes: 100,
						Streams: []report.Stream{{Storage: report.Segment, Path: "file:/x", Offset: 12, Bytes: -1}},
					}}},
				},
			},
			{ID: "bb", Name: "done", Parallelism: 1, MaxParallelism: 1, FullyFinished: true},
		},
		Largest: []report.Large{{
			Stream: report.Stream{Storage: report.Segment, Path: "file:/x", Offset: 12, Bytes: 100}, OperatorID: "aa", Subtask: &subtask, Role: report.InputChannels,
		}},
	}
	var out bytes.Buffer
	Inspection(NewPrinter(&out, false), i)
	require.Equal(t, `file:/j/chk-1
  checkpoint  1
  metadata    2.0 KiB, version 3, its checksum is right
  taken       1970-01-01T00:00:00Z, kind unknown, durability not recorded
  properties  null
  state       100 B of 2 subtasks, 0 B written for this checkpoint, 0 B inline
  objects     3 files, 50 B, 1 without recorded size, 2 with checksums
  master      hook\n, version 2, 7 B

2 operators
├─ (no name)  100 B (100%)
│  ├─ id aa
│  ├─ parallelism 4 of at most 128, 1 subtask, 1 finished
│  ├─ operator states
│  │  └─ r: UNION, 1 partition, raw
│  └─ subtasks
│     ├─ 2 finished
│     └─ 3
│        └─ input channels: merged channels, 100 B
│           └─ segment ? file:/x at 12
└─ done  0 B (0%)
   ├─ id bb
   └─ parallelism 1 of at most 1, finished

LARGEST  SHARE  OPERATOR  SUBTASK  STATE           WHERE
  100 B   100%  aa              3  input channels  file:/x at 12
`, out.String())
}
