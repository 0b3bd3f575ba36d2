package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
)

const page = "../../../../docs/command.md"

// pages are all that show transcripts.
var pages = []string{page, "../../../../docs/inspect-a-checkpoint.md"}

// transcript finds the blocks of the page that show a golden file.
var transcript = regexp.MustCompile("(?s)(<!-- golden: (\\S+) -->\n```console\n)(.*?)(```\n)")

// TestThePagesShowWhatTheCommandPrints comes last, by the name of this file, so that it sees golden files that were just
// written. It also writes the transcripts into the pages, when it runs with -update.
func TestThePagesShowWhatTheCommandPrints(t *testing.T) {
	for _, name := range pages {
		t.Run(filepath.Base(name), func(t *testing.T) { checkPage(t, name) })
	}
}

func checkPage(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	shown := 0
	want := transcript.ReplaceAllStringFunc(string(text), func(block string) string {
		shown++
		parts := transcript.FindStringSubmatch(block)
		return parts[1] + forPeople(t, parts[2]) + parts[4]
	})
	require.Positive(t, shown)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o644))
		return
	}
	require.True(t, want == string(text), "the page differs; go test ./cmd/hdfsckpt/internal/cli -update writes it")
}

// forPeople turns a golden file into what a terminal shows.
func forPeople(t *testing.T, name string) string {
	golden, err := os.ReadFile(filepath.Join("testdata", "golden", name))
	require.NoError(t, err)
	shown := strings.ReplaceAll(string(golden), "--- standard error\n", "")
	body, code, found := strings.Cut(shown, "--- exit code ")
	require.True(t, found)
	if code != "0\n" {
		body += "$ echo $?\n" + code
	}
	return body
}

func TestThePageNamesEveryFieldKindAndStateOfTheJSONForms(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	seen := map[reflect.Type]bool{}
	for _, form := range []any{
		report.Document{}, report.Listing{}, report.Latest{}, report.Inspection{}, report.Verification{}, report.Comparison{}, report.Conversion{}, report.Disposal{}, report.Examination{}, Version{},
	} {
		for _, field := range fieldsOf(reflect.TypeOf(form), seen) {
			require.Contains(t, string(text), "`"+field+"`", "%T", form)
		}
	}
	for _, value := range []string{
		string(report.Usage), string(report.NotFound), string(report.None), string(report.Vanished), string(report.Damaged),
		string(report.Unsupported), string(report.Permission), string(report.Unavailable), string(report.NoSpace), string(report.Refused),
		string(report.Incomplete), string(report.Invalid), string(report.Timeout), string(report.Interrupted), string(report.Failed),
		string(report.Complete), string(report.InProgress), string(report.Broken), string(report.Disposing), string(report.Emptied),
		string(report.CheckpointEntry), string(report.SavepointEntry),
		string(report.Missing), string(report.Short), string(report.Long), string(report.Corrupt), string(report.Unreadable),
		string(report.Added), string(report.Removed), string(report.Changed), string(report.Same),
		string(report.Sound), string(report.Unsound), string(report.Unknown),
		string(report.Planned), string(report.Disposed), string(report.Gone), string(report.NotDisposed), string(report.HalfDisposed),
		string(report.DisposalError),
		string(report.StepConfiguration), string(report.StepLogin), string(report.StepNameNodes), string(report.StepSafeMode),
		string(report.StepDirectory), string(report.StepWrite), string(report.StepRead), string(report.StepExclusive),
		string(report.StepRename), string(report.StepRemove), string(report.StepOK), string(report.StepFailed), string(report.StepSkipped),
		string(report.ManagedOperator), string(report.RawOperator), string(report.ManagedKeyed), string(report.RawKeyed),
		string(report.InputChannels), string(report.ResultSubpartitions), string(report.Coordinator),
		string(report.Inline), string(report.RelativeFile), string(report.AbsoluteFile), string(report.Segment),
		"operator_state", "merged_operator_state", "canonical_key_groups", "key_groups", "incremental", "changelog", "changelog_bytes",
		"changelog_files", "channel", "merged_channels",
	} {
		require.Contains(t, string(text), "`"+value+"`")
	}
}

// fieldsOf lists the JSON names of a form and of the forms in it.
func fieldsOf(form reflect.Type, seen map[reflect.Type]bool) []string {
	for form.Kind() == reflect.Pointer || form.Kind() == reflect.Slice {
		form = form.Elem()
	}
	if form.Kind() != reflect.Struct || seen[form] || !strings.Contains(form.PkgPath(), "hdfsckpt") {
		return nil
	}
	seen[form] = true
	var names []string
	for i := range form.NumField() {
		field := form.Field(i)
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
		names = append(names, fieldsOf(field.Type, seen)...)
	}
	return names
}
