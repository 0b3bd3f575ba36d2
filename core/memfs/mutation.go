package memfs

import "fmt"

// Op is the kind of call that a [Mutation] belongs to.
type Op string

// The calls that change something. RemoveAll appears as one OpRemove for each name it removes, MkdirAll as OpMkdir for each
// directory it makes.
const (
	OpCreate Op = "create"
	OpWrite  Op = "write"
	OpSync   Op = "sync"
	OpClose  Op = "close"
	OpAbort  Op = "abort"
	OpMkdir  Op = "mkdir"
	OpRename Op = "rename"
	OpRemove Op = "remove"
)

// Step is how far a call has come.
type Step string

const (
	// Applied: the change can be seen; a crash may undo it.
	Applied Step = "applied"
	// DataDurable: the bytes of the file survive a crash, its name perhaps not.
	DataDurable Step = "data durable"
	// EntryDurable: the directory entries survive a crash.
	EntryDurable Step = "entry durable"
)

// Mutation is one step that has just changed the file system.
type Mutation struct {
	// Number counts the steps of this file system from 0.
	Number int
	Op     Op
	Step   Step
	// Name is the name that the step changed; for a rename the old one.
	Name string
	// NewName is set for a rename.
	NewName string
}

// String describes the step for messages of tests.
func (m Mutation) String() string {
	if m.NewName != "" {
		return fmt.Sprintf("#%d %s %s to %s: %s", m.Number, m.Op, m.Name, m.NewName, m.Step)
	}
	return fmt.Sprintf("#%d %s %s: %s", m.Number, m.Op, m.Name, m.Step)
}

// OnMutation sets the function that is called after every step, in the goroutine that made it and outside of all locks, so
// that it may use the file system, CrashClone included. Where several goroutines change the file system, others may have
// gone on before the call. Nil sets none.
func (f *FS) OnMutation(hook func(Mutation)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = hook
}

// Mutations is the number of steps so far, which is the Number of the next.
func (f *FS) Mutations() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mutations
}

// unlockAfter ends a critical section that made the step m: it numbers m, unlocks, and only then calls the hook.
func (f *FS) unlockAfter(m Mutation) {
	m.Number = f.mutations
	f.mutations++
	hook := f.hook
	f.mu.Unlock()
	if hook != nil {
		hook(m)
	}
}
