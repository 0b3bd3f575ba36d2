package report

// StepName is something that doctor looks at. The values are part of the JSON interface.
type StepName string

// The steps, in their order. Those of the surroundings are there for HDFS alone.
const (
	StepConfiguration StepName = "configuration" // files, nameservice, addresses, security
	StepLogin         StepName = "login"
	StepNameNodes     StepName = "namenodes"
	StepSafeMode      StepName = "safe_mode"
	StepDirectory     StepName = "directory" // where the probe is written
	StepWrite         StepName = "write"     // a file with the strongest durability
	StepRead          StepName = "read"      // the same bytes
	StepExclusive     StepName = "exclusive" // a name that is taken is refused
	StepRename        StepName = "rename"
	StepRemove        StepName = "remove"
)

// StepStatus is what came of a step. The values are part of the JSON interface.
type StepStatus string

// The outcomes of a step.
const (
	StepOK      StepStatus = "ok"
	StepFailed  StepStatus = "failed"
	StepSkipped StepStatus = "skipped" // a step before it failed, and this one would only repeat it
)

// Step is one thing that doctor looked at.
type Step struct {
	Name   StepName   `json:"name"`
	Status StepStatus `json:"status"`
	// Details are facts for people, one a line.
	Details []string `json:"details"`
	// Milliseconds is how long it took.
	Milliseconds int64 `json:"milliseconds"`
	// Problem says why it failed, and what can be done.
	Problem *Problem `json:"problem,omitempty"`
}

// Examination is the result of doctor.
type Examination struct {
	// URL is what was asked about, Directory where the probe was written: the nearest directory that there is.
	URL       string `json:"url"`
	Directory string `json:"directory,omitempty"`
	// Healthy: no step failed.
	Healthy bool   `json:"healthy"`
	Steps   []Step `json:"steps"`
}

// NewExamination sums the steps up.
func NewExamination(url, directory string, steps []Step) *Examination {
	e := &Examination{URL: url, Directory: directory, Healthy: true, Steps: steps}
	for _, s := range steps {
		e.Healthy = e.Healthy && s.Status != StepFailed
	}
	return e
}

// Problems are those of the steps that failed.
func (e *Examination) Problems() []Problem {
	var all []Problem
	for _, s := range e.Steps {
		if s.Problem != nil {
			all = append(all, *s.Problem)
		}
	}
	return all
}
