package metadata

import (
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// The least number of bytes that one element of a list takes. They bound what a list may announce, so they must never be
// too large; that they are as large as possible keeps the memory for damaged files small.
const (
	minMaster     = 4 + 4 + 4 + 2 + 4
	minOperatorV2 = 16 + 4 + 4 + 4 + 4
	minOperatorV3 = 16 + 4 + 4 + 1 + 4
	minOperatorV5 = minOperatorV3 + 2 + 2
	minSubtaskV2  = 4 + 8 + 4 + 4 + 4 + 1 + 1
	minSubtaskV3  = 4
)

// failedIn reports whether there was a failure, and if so names the value in which it was.
func (p *parser) failedIn(name string) bool {
	if p.err == nil {
		return false
	}
	p.err.in(name)
	return true
}

func (p *parser) failedAt(name string, i int) bool {
	if p.err == nil {
		return false
	}
	p.err.inIndex(name, i)
	return true
}

func (p *parser) checkpoint(c *Checkpoint) {
	at := p.pos()
	c.ID = p.i64()
	if c.ID < 0 {
		p.fail(corrupt(at, "negative checkpoint id %d", c.ID))
	}
	if p.failedIn("id") {
		return
	}
	n := p.length(minMaster)
	c.MasterStates = p.slabs.masters.take(n)
	p.reserved += n * minMaster
	for i := range c.MasterStates {
		p.reserved -= minMaster
		p.master(&c.MasterStates[i])
		if p.failedAt("masterStates", i) {
			return
		}
	}
	if p.failedIn("masterStates") {
		return
	}
	p.operatorStates(c)
}

func (p *parser) master(m *MasterState) {
	at := p.pos()
	if magic := uint32(p.i32()); magic != masterMagic {
		p.fail(corrupt(at, "%08x is not the magic number of a master state", magic))
	}
	at = p.pos()
	n := p.length(1)
	end := p.pos() + n
	m.Version = p.i32()
	m.Name = p.text()
	m.Data = p.blob()
	if p.err == nil && p.pos() != end {
		p.fail(corrupt(at, "a length of %d bytes is announced, the content has %d", n, n+p.pos()-end))
	}
}

func (p *parser) operatorStates(c *Checkpoint) {
	size := minOperatorV3
	switch {
	case p.version < firstWithFinished:
		size = minOperatorV2
	case p.version >= firstWithNames:
		size = minOperatorV5
	}
	n := p.length(size)
	if p.scan != nil {
		p.visitOperators(n, size)
		return
	}
	c.Operators = p.slabs.operatorList.take(n)
	p.reserved += n * size
	for i := range c.Operators {
		p.reserved -= size
		p.operator(&c.Operators[i])
		if p.failedAt("operators", i) {
			return
		}
	}
	p.failedIn("operators")
}

func (p *parser) operator(o *OperatorState) {
	if p.version >= firstWithNames {
		o.Name = p.text()
		o.UID = p.text()
	}
	copy(o.ID[:], p.bytes(len(o.ID)))
	at := p.pos()
	parallelism, most := p.i32(), p.i32()
	o.Parallelism, o.MaxParallelism = int(parallelism), int(most)
	if problem := parallelismProblem(o); problem != "" {
		p.fail(corrupt(at, "%s", problem))
		return
	}
	if p.version < firstWithFinished {
		p.i32() // the length of the operator chain before Flink 1.3
	} else {
		o.Coordinator = p.coordinator()
		if p.failedIn("coordinator") {
			return
		}
	}
	p.subtasks(o)
}

// parallelismProblem says what is wrong with the numbers of subtasks, "" if nothing is. They bound what others allocate, so
// they are held to what Flink can run.
func parallelismProblem(o *OperatorState) string {
	switch {
	case o.MaxParallelism < 0 || o.MaxParallelism > MaxKeyGroups:
		return fmt.Sprintf("max parallelism %d is not in 0…%d", o.MaxParallelism, MaxKeyGroups)
	case o.Parallelism < 0 || o.Parallelism > o.MaxParallelism:
		return fmt.Sprintf("parallelism %d is not in 0…%d, the max parallelism", o.Parallelism, o.MaxParallelism)
	}
	return ""
}

func (p *parser) coordinator() *core.BytesHandle {
	at := p.pos()
	switch h := p.stream().(type) {
	case nil:
		return nil
	case *core.BytesHandle:
		return h
	default:
		p.fail(corrupt(at, "the state of a coordinator must be inline, this is a %s", kindOfStream(h)))
		return nil
	}
}

func (p *parser) subtasks(o *OperatorState) {
	at, size := p.pos(), minSubtaskV2
	count := p.i32()
	if p.version >= firstWithFinished {
		size = minSubtaskV3
		if count < 0 {
			o.FullyFinished = true
			if o.Coordinator != nil {
				p.fail(corrupt(at, "an operator that has finished has the state of a coordinator"))
			}
			if p.scan != nil {
				p.visitSubtasks(o, 0, size)
			}
			return
		}
	}
	n := p.claim(at, int64(count), size)
	if p.scan != nil {
		p.visitSubtasks(o, n, size)
		return
	}
	o.Subtasks = p.slabs.subtasks.take(n)
	p.reserved += n * size
	for i := range o.Subtasks {
		p.reserved -= size
		p.oneSubtask(o, &o.Subtasks[i])
		if p.failedAt("subtasks", i) {
			return
		}
	}
	p.failedIn("subtasks")
}

func (p *parser) oneSubtask(o *OperatorState, s *Subtask) {
	at := p.pos()
	index := int(p.i32())
	finished := index < 0 && p.version >= firstWithFinished
	if finished {
		index = -(index + 1)
	}
	if index < 0 || index >= o.Parallelism {
		p.fail(corrupt(at, "subtask index %d is not below the parallelism %d", index, o.Parallelism))
		return
	}
	s.Index = index
	if finished {
		return
	}
	if p.version < firstWithFinished {
		p.i64() // the duration of the snapshot
		if legacy := p.i32(); legacy != 0 {
			p.fail(corrupt(p.pos()-4, "%d states of Flink 1.1, which cannot be read", legacy))
		}
	}
	s.State = p.slabs.states.one()
	p.subtask = index
	p.state(s.State)
}

func (p *parser) state(s *SubtaskState) {
	s.ManagedOperator = p.maybeOperatorHandle()
	if p.failedIn("managedOperator") {
		return
	}
	s.RawOperator = p.maybeOperatorHandle()
	if p.failedIn("rawOperator") {
		return
	}
	s.ManagedKeyed = p.keyed()
	if p.failedIn("managedKeyed") {
		return
	}
	s.RawKeyed = p.keyed()
	if p.failedIn("rawKeyed") {
		return
	}
	if p.version < firstWithFinished {
		return
	}
	s.InputChannels = p.channels("inputChannels", tagInputChannel, tagMergedInput)
	if p.err == nil {
		s.ResultSubpartitions = p.channels("resultSubpartitions", tagSubpartition, tagMergedSubpartition)
	}
}
