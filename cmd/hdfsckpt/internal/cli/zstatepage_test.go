package cli

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

const statePage = "../../../../docs/state-command.md"

// TestThePageOfStateShowsWhatTheCommandPrints is for that page what TestThePageShowsWhatTheCommandPrints is for the other.
func TestThePageOfStateShowsWhatTheCommandPrints(t *testing.T) {
	text, err := os.ReadFile(statePage)
	require.NoError(t, err)
	shown := 0
	want := transcript.ReplaceAllStringFunc(string(text), func(block string) string {
		shown++
		parts := transcript.FindStringSubmatch(block)
		return parts[1] + forPeople(t, parts[2]) + parts[4]
	})
	require.Greater(t, shown, 10)
	if *update {
		require.NoError(t, os.WriteFile(statePage, []byte(want), 0o644))
		return
	}
	require.True(t, want == string(text), "docs/state-command.md differs; go test ./cmd/hdfsckpt/internal/cli -update writes it")
}

func TestThePageOfStateNamesEveryFieldAndValueOfTheJSONForms(t *testing.T) {
	text, err := os.ReadFile(statePage)
	require.NoError(t, err)
	seen := map[reflect.Type]bool{reflect.TypeOf(report.Problem{}): true}
	for _, form := range []any{
		report.StateListing{},
		report.StateInfo{},
		report.StateDump{},
		report.StateDiff{},
		report.StateHistory{},
		report.StateVerification{},
		report.StateWork{},
	} {
		for _, field := range fieldsOf(reflect.TypeOf(form), seen) {
			require.True(t, strings.Contains(string(text), "`"+field+"`"), "%T: %s", form, field)
		}
	}
	for _, value := range []string{
		string(report.StateReady), string(report.StateIncomplete), string(report.StateMissing), string(report.StateEmpty),
		string(report.WorkPlanned), string(report.WorkDone), string(report.WorkNothing), string(report.WorkRefused), string(report.WorkFailed),
		string(report.WorkPending),
		string(sparkckpt.FileCorrupt), string(sparkckpt.FileUnreadable), string(sparkckpt.FileMissing), string(sparkckpt.NotLoadable),
		string(sparkckpt.NotCommitted), string(sparkckpt.SnapshotDiffers), string(sparkckpt.ChecksumFile), string(sparkckpt.OtherCodec),
		string(sparkckpt.VersionAhead), string(sparkckpt.NameBlocked), string(sparkckpt.NameForeign), string(sparkckpt.FileLeftOver),
		string(sparkckpt.Added), string(sparkckpt.Changed), string(sparkckpt.Removed), string(sparkckpt.Unchanged), string(sparkckpt.StillAbsent),
		string(sparkckpt.FirstKnown), string(sparkckpt.UnknownState),
		sparkckpt.Warning.String(), sparkckpt.Unclear.String(), sparkckpt.Damage.String(),
		sparkckpt.HDFSBacked.String(), sparkckpt.RocksDB.String(), sparkckpt.UnknownProvider.String(),
	} {
		require.True(t, strings.Contains(string(text), "`"+value+"`"), value)
	}
}
