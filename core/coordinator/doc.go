// Package coordinator drives the checkpoints of one job: it triggers them, collects what the tasks acknowledge, commits or
// aborts each as a whole, restores the newest after a restart, and deletes those that are not retained any more.
//
// A job is a set of [Operator]s; each parallel instance of one is a [Task]. The coordinator does not know how tasks are
// reached: it hands a [Trigger] to [Options].Send, and the tasks answer through [Coordinator.Acknowledge] or
// [Coordinator.Decline]. Trigger, Ack and Decline are plain values with a binary and a JSON form, so tasks may run in the same
// process or in others.
//
//	           New, Start                  Send                     tasks write state to
//	job  ────────────────► Coordinator ─────────► tasks ────────────► Trigger.Location
//	           Run, Trigger…     ▲                  │
//	                             └── Ack, Decline ──┘
//
// A checkpoint has exactly one outcome. It is committed when every task has acknowledged it and its `_metadata` is durable
// under its final name; it is aborted when a task declines, the time is up, a newer checkpoint is committed first, or
// anything fails before. The storage decides: what cannot be told from here (an answer of the storage that was lost) is
// neither reported as committed nor as aborted until it is known, see [ErrUnsettled].
//
// # What a task may refer to
//
// A task writes its state through the location of the trigger. It may also refer once more to shared files that are part of
// the checkpoint [Trigger].Base: they are kept until the new checkpoint has its outcome. It must not refer to files of any
// other checkpoint, nor to files of one that it does not know to be committed: upload them again.
//
// # Transactions outside
//
// A sink that writes to other systems prepares a transaction for each checkpoint and makes it visible when the checkpoint is
// committed ([Options].OnCommitted). The rules:
//
//   - OnCommitted of a checkpoint covers everything that was prepared up to it, for aborted checkpoints and for savepoints
//     too: their data is part of the next checkpoint.
//   - OnCommitted may come more than once; after a restart it always comes for the checkpoint that is restored.
//   - OnAborted does not mean that data is lost. It only says that the files of that attempt are gone.
//   - After a restart a sink drops what was prepared later than the restored checkpoint.
//   - Names given in other systems should hold the epoch and the id: only the pair is never used twice.
//
// # Time
//
// Nothing runs but the calls that the caller has made: a checkpoint is driven by the goroutine that called Run, Trigger… or
// StopWithSavepoint, and goroutines that these start have ended when they return.
package coordinator
