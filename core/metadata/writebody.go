package metadata

import (
	"math"
	"slices"
)

func (e *encoder) checkpoint(c *Checkpoint) {
	if c.ID < 0 {
		e.fail(invalid("negative checkpoint id %d", c.ID))
	}
	e.i64(c.ID)
	e.i32(len(c.MasterStates))
	for i := range c.MasterStates {
		e.master(&c.MasterStates[i])
		if e.failedAt("masterStates", i) {
			return
		}
		e.spill()
	}
	e.i32(len(c.Operators))
	for i := range c.Operators {
		e.operator(&c.Operators[i])
		if e.failedAt("operators", i) {
			return
		}
		if i == 0 {
			e.foresee(c)
		}
	}
}

// mostForeseen bounds what a first operator that is unlike the others can make foresee allocate in vain.
const mostForeseen = 64 << 20

// foresee makes room for the operators that are still to come, on the guess that their subtasks are like those of the first.
func (e *encoder) foresee(c *Checkpoint) {
	first := len(c.Operators[0].Subtasks)
	if e.w != nil || first == 0 {
		return
	}
	rest := 0
	for i := 1; i < len(c.Operators); i++ {
		rest += len(c.Operators[i].Subtasks)
	}
	perSubtask := (len(e.buf)-e.base)/first + 1
	e.buf = slices.Grow(e.buf, min(rest*(perSubtask+perSubtask/16), mostForeseen))
}

func (e *encoder) master(m *MasterState) {
	e.u32(masterMagic)
	length := len(e.buf)
	e.u32(0)
	e.u32(uint32(m.Version))
	e.text(m.Name)
	e.blob(m.Data)
	e.patch(length, len(e.buf)-length-4)
}

func (e *encoder) operator(o *OperatorState) {
	if e.version >= firstWithNames {
		e.text(o.Name)
		if e.failedIn("name") {
			return
		}
		e.text(o.UID)
		if e.failedIn("uid") {
			return
		}
	}
	e.buf = append(e.buf, o.ID[:]...)
	if problem := parallelismProblem(o); problem != "" {
		e.fail(invalid("%s", problem))
	}
	e.i32(o.Parallelism)
	e.i32(o.MaxParallelism)
	if o.Coordinator == nil {
		e.u8(tagNone)
	} else {
		e.stream(o.Coordinator)
		if e.failedIn("coordinator") {
			return
		}
	}
	if o.FullyFinished {
		if o.Coordinator != nil || len(o.Subtasks) > 0 {
			e.fail(invalid("an operator that has finished has neither subtasks nor the state of a coordinator"))
		}
		e.u32(math.MaxUint32) // -1
		return
	}
	e.i32(len(o.Subtasks))
	for i := range o.Subtasks {
		s := &o.Subtasks[i]
		if s.Index < 0 || s.Index >= o.Parallelism {
			e.fail(invalid("subtask index %d is not below the parallelism %d", s.Index, o.Parallelism))
		}
		if s.Finished() {
			e.i32(-(s.Index + 1))
		} else {
			e.i32(s.Index)
			e.state(s.State)
		}
		if e.failedAt("subtasks", i) {
			return
		}
		e.spill()
	}
}

func (e *encoder) state(s *SubtaskState) {
	e.maybeOperatorHandle(s.ManagedOperator)
	if e.failedIn("managedOperator") {
		return
	}
	e.maybeOperatorHandle(s.RawOperator)
	if e.failedIn("rawOperator") {
		return
	}
	e.keyed(s.ManagedKeyed)
	if e.failedIn("managedKeyed") {
		return
	}
	e.keyed(s.RawKeyed)
	if e.failedIn("rawKeyed") {
		return
	}
	e.channels("inputChannels", s.InputChannels, tagInputChannel, tagMergedInput)
	if e.err == nil {
		e.channels("resultSubpartitions", s.ResultSubpartitions, tagSubpartition, tagMergedSubpartition)
	}
}

// footer finishes the body and writes the footer: see footer.go.
func (e *encoder) footer(c *Checkpoint, f *Footer) {
	if f.Kind.String() == "invalid" || f.Durability.String() == "invalid" {
		e.fail(invalid("there is no kind %d or no durability %d", f.Kind, f.Durability))
		return
	}
	body := e.checksum()
	foot := &encoder{}
	foot.buf = append(foot.buf, footerMagic...)
	foot.i32(footerVersion)
	foot.u32(0) // the length, which is not known yet
	foot.u32(body)
	foot.i64(f.Created.UnixMilli())
	foot.u8(byte(f.Kind))
	foot.u8(byte(f.Durability))
	foot.names(c, e.version)
	e.annex.append(foot)

	length := len(foot.buf) + footerTail
	foot.patch(len(footerMagic)+4, length)
	foot.u32(foot.checksum())
	foot.i32(length)
	if foot.err != nil {
		e.fail(foot.err)
		return
	}
	e.buf = append(e.buf, foot.buf...)
}

func (e *encoder) names(c *Checkpoint, version int) {
	start, n := len(e.buf), 0
	e.u32(0)
	if version >= firstWithNames {
		return
	}
	for i := range c.Operators {
		o := &c.Operators[i]
		if o.Name == "" && o.UID == "" {
			continue
		}
		n++
		e.i32(i)
		e.text(o.Name)
		e.text(o.UID)
		if e.err != nil {
			e.failedAt("names", i)
			return
		}
	}
	e.patch(start, n)
}
