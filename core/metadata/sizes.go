package metadata

// The sizes follow Flink: unknown ones count as -1, and sums may wrap round.

// StateSize is the number of bytes of all state.
func (c *Checkpoint) StateSize() int64 {
	var sum int64
	for i := range c.Operators {
		sum += c.Operators[i].StateSize()
	}
	return sum
}

// CheckpointedSize is the number of bytes that were written for this checkpoint.
func (c *Checkpoint) CheckpointedSize() int64 {
	var sum int64
	for i := range c.Operators {
		sum += c.Operators[i].CheckpointedSize()
	}
	return sum
}

// StateSize is the number of bytes of the state of the coordinator and all subtasks.
func (o *OperatorState) StateSize() int64 { return o.size((*SubtaskState).StateSize) }

// CheckpointedSize is the number of bytes of which were written for this checkpoint.
func (o *OperatorState) CheckpointedSize() int64 { return o.size((*SubtaskState).CheckpointedSize) }

func (o *OperatorState) size(of func(*SubtaskState) int64) int64 {
	var sum int64
	if o.Coordinator != nil {
		sum = o.Coordinator.StateSize()
	}
	for i := range o.Subtasks {
		if state := o.Subtasks[i].State; state != nil {
			sum += of(state)
		}
	}
	return sum
}

// StateSize is the number of bytes of all state of the subtask.
func (s *SubtaskState) StateSize() int64 { return s.size(KeyedHandle.StateSize) }

// CheckpointedSize is the number of bytes of which were written for this checkpoint.
func (s *SubtaskState) CheckpointedSize() int64 { return s.size(KeyedHandle.CheckpointedSize) }

func (s *SubtaskState) size(ofKeyed func(KeyedHandle) int64) int64 {
	var sum int64
	for _, h := range [...]*OperatorHandle{s.ManagedOperator, s.RawOperator} {
		if h != nil {
			sum += h.StateSize()
		}
	}
	for _, h := range [...]KeyedHandle{s.ManagedKeyed, s.RawKeyed} {
		if h != nil {
			sum += ofKeyed(h)
		}
	}
	for _, list := range [...][]ChannelHandle{s.InputChannels, s.ResultSubpartitions} {
		for i := range list {
			sum += list[i].Size
		}
	}
	return sum
}
