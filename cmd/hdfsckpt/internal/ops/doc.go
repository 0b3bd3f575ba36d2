// Package ops does the I/O of the command's verbs: it looks at directories, reads metadata, checks objects, disposes. What it
// sees becomes a report of package report. Nothing changes anything but Dispose and the writing verbs of
// state, when they are told to.
package ops
