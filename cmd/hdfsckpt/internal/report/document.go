package report

import "strings"

// FormVersion is the version of the JSON forms. Within a version, fields are only added.
const FormVersion = 1

// Document is the one JSON value that the command writes to its standard output with --json, whatever happens.
type Document struct {
	// Format is "hdfsckpt/" and the verb; "hdfsckpt" alone if the command line names none.
	Format   string `json:"format"`
	Version  int    `json:"version"`
	ExitCode int    `json:"exit_code"`
	// Errors are what kept the command from doing all that was asked; empty if nothing did.
	Errors []Problem `json:"errors"`
	// Result is that of the verb, null if there is none.
	Result any `json:"result"`
}

// NewDocument puts a result and its problems into the form of the verb.
func NewDocument(verb string, exitCode int, problems []Problem, result any) Document {
	if problems == nil {
		problems = []Problem{}
	}
	return Document{Format: strings.TrimSuffix("hdfsckpt/"+verb, "/"), Version: FormVersion, ExitCode: exitCode, Errors: problems, Result: result}
}
