// Package report turns what was seen of checkpoints into what the command reports: entries, inventories, findings, problems
// and the exit code that follows from them. It is pure: nothing here does I/O, and nothing here knows how a report is shown.
//
// The JSON names of its types are the machine-readable interface of the command (docs/command.md): within a version of a
// form, fields are added and never renamed or removed.
package report
