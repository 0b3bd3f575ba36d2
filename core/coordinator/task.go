package coordinator

import (
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// DefaultMaxParallelism is the number of key groups of an operator that does not say.
const DefaultMaxParallelism = 128

// Task is one parallel instance of an operator. It is comparable.
type Task struct {
	Operator metadata.OperatorID `json:"operator"`
	// Subtask is the index of the instance, from 0 to the operator's parallelism - 1.
	Subtask int `json:"subtask"`
}

// String is "<operator id>/<subtask>".
func (t Task) String() string { return fmt.Sprintf("%s/%d", t.Operator, t.Subtask) }

// Operator is a part of a job that has state.
type Operator struct {
	// ID ties the state to the operator across restarts. The zero value is [OperatorIDOf] the UID.
	ID metadata.OperatorID
	// Name is for people. UID is the stable text that the ID is made from; it may be "" if the ID is given.
	Name string
	UID  string
	// Parallelism is the number of subtasks; 0 is 1.
	Parallelism int
	// MaxParallelism is the number of key groups, at least Parallelism and at most metadata.MaxKeyGroups. It cannot be changed
	// once there is keyed state. 0 is DefaultMaxParallelism.
	MaxParallelism int
}

func (o Operator) withDefaults() Operator {
	if o.ID == (metadata.OperatorID{}) {
		o.ID = OperatorIDOf(o.UID)
	}
	if o.Parallelism == 0 {
		o.Parallelism = 1
	}
	if o.MaxParallelism == 0 {
		o.MaxParallelism = DefaultMaxParallelism
	}
	return o
}

// label names the operator in messages.
func (o Operator) label() string {
	switch {
	case o.Name != "":
		return fmt.Sprintf("%q (%s)", o.Name, o.ID)
	case o.UID != "":
		return fmt.Sprintf("%q (%s)", o.UID, o.ID)
	}
	return o.ID.String()
}
