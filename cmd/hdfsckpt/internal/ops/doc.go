// Package ops does the I/O of the command's verbs: it looks at directories, reads metadata, checks objects, disposes. What it
// sees becomes a report of package report. Nothing but Dispose, when it is told to, changes anything.
package ops
