package coordinator

import (
	"errors"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// measure is what an acknowledgement brings.
type measure struct {
	objects    []core.Object
	stateSize  int64
	inlineSize int64
}

// measureAck checks that the state of an acknowledgement can be part of the checkpoint at the location, see Acknowledge. What
// it could find out is returned with an error too.
func measureAck(location *core.Location, kind Kind, op Operator, ack Ack) (measure, error) {
	var m measure
	if ack.State == nil {
		return m, nil
	}
	objects, err := metadata.ObjectsOfSubtask(ack.State)
	if err != nil {
		return m, err
	}
	m = measure{objects: objects, stateSize: ack.State.StateSize(), inlineSize: inlineSize(ack.State)}
	if ack.Finished {
		return m, errors.New("a finished task has no state")
	}
	for i := range objects {
		if problem := misplaced(location, kind, &objects[i]); problem != "" {
			return m, fmt.Errorf("%s %s", objects[i].Path, problem)
		}
	}
	return m, checkKeyGroups(op, ack)
}

// misplaced says why an object cannot be part of the checkpoint at the location, "" if it can.
func misplaced(location *core.Location, kind Kind, object *core.Object) string {
	switch place := location.Place(object.Path); {
	case place == core.InCheckpointDir && object.Directory:
		return "is the directory of another kind of storage"
	case place == core.InCheckpointDir:
		return ""
	case kind == Savepoint:
		return fmt.Sprintf("is not in the savepoint's own directory %v; a savepoint owns all its files", location)
	case object.Relative:
		return fmt.Sprintf("is named by a relative handle, which is not one of the checkpoint's own directory %v", location)
	case place == core.Elsewhere:
		return fmt.Sprintf("is neither in the checkpoint's own directory %v nor in the job's shared or taskowned directory", location)
	}
	return ""
}

func checkKeyGroups(op Operator, ack Ack) error {
	own, err := metadata.KeyGroupsOfSubtask(ack.Task.Subtask, op.Parallelism, op.MaxParallelism)
	if err != nil {
		return err
	}
	for _, handle := range []metadata.KeyedHandle{ack.State.ManagedKeyed, ack.State.RawKeyed} {
		if handle == nil {
			continue
		}
		if held := handle.KeyGroups(); held.Count > 0 && held.Intersect(own) != held {
			return fmt.Errorf("keyed state of the key groups %v does not belong to the subtask, whose groups are %v", held, own)
		}
	}
	return nil
}

// inlineSize is the number of bytes of state that is in the handles themselves.
func inlineSize(s *metadata.SubtaskState) int64 {
	var sum int64
	for _, h := range []*metadata.OperatorHandle{s.ManagedOperator, s.RawOperator} {
		if h != nil {
			sum += inlineStream(h.Delegate)
		}
	}
	sum += inlineKeyed(s.ManagedKeyed) + inlineKeyed(s.RawKeyed)
	for _, channels := range [][]metadata.ChannelHandle{s.InputChannels, s.ResultSubpartitions} {
		for i := range channels {
			sum += inlineStream(channels[i].Delegate)
		}
	}
	return sum
}

func inlineStream(handle core.StreamHandle) int64 {
	switch h := handle.(type) {
	case *core.BytesHandle:
		return int64(len(h.Data))
	case *metadata.KeyGroupsHandle:
		return inlineStream(h.Delegate)
	}
	return 0
}

func inlineKeyed(handle metadata.KeyedHandle) int64 {
	var sum int64
	switch h := handle.(type) {
	case *metadata.KeyGroupsHandle:
		sum = inlineStream(h.Delegate)
	case *metadata.IncrementalHandle:
		sum = inlineStream(h.Meta)
		for _, files := range [][]metadata.NamedFile{h.Shared, h.Private} {
			for i := range files {
				sum += inlineStream(files[i].Handle)
			}
		}
	case *metadata.ChangelogHandle:
		for _, parts := range [][]metadata.KeyedHandle{h.Materialized, h.Changes} {
			for _, part := range parts {
				sum += inlineKeyed(part)
			}
		}
	case *metadata.ChangelogBytesHandle:
		sum = h.StateSize()
	case *metadata.ChangelogFileHandle:
		for i := range h.Parts {
			sum += inlineStream(h.Parts[i].Handle)
		}
	}
	return sum
}
