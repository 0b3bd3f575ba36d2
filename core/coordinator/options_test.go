package coordinator

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

func TestAllProblemsOfTheOptionsAreReportedAtOnce(t *testing.T) {
	_, err := New(Options{
		Operators: []Operator{
			{},
			{UID: "a", Parallelism: -1},
			{UID: "a"},
			{UID: "b", Parallelism: 9, MaxParallelism: 8},
			{UID: "c", MaxParallelism: metadata.MaxKeyGroups + 1},
			{UID: strings.Repeat("x", maxText+1)},
		},
		Interval: -1, MinPause: -1, Timeout: -1, MaxConcurrent: -1, TolerableFailures: -2, Retain: -1, MaxInlineBytes: -1,
		MetadataVersion: 7, Restore: Restore{Fresh: true, Pointer: "file:/x"},
	})
	require.ErrorIs(t, err, fs.ErrInvalid)
	for _, problem := range []string{
		"Storage is missing", "Send is missing", "Interval", "MinPause", "Timeout", "MaxConcurrent", "TolerableFailures", "Retain",
		"MaxInlineBytes", "MetadataVersion", "Fresh and Pointer", "Operators[0] has neither ID nor UID", "Operators[1].Parallelism",
		"Operators[2] has the id of Operators[1]", "Operators[3].Parallelism", "Operators[4].MaxParallelism", "Operators[5]: Name and UID",
	} {
		require.ErrorContains(t, err, problem)
	}
	_, err = New(Options{})
	require.ErrorContains(t, err, "Operators is empty")
}

func TestDefaultsOfTheOptions(t *testing.T) {
	c, err := New(Options{
		Storage: newStorage(t, newFS(t)), Operators: []Operator{{UID: "a"}},
		Send: func(context.Context, Trigger) error { return nil },
	})
	require.NoError(t, err)
	require.Equal(t, []Operator{{UID: "a", ID: OperatorIDOf("a"), Parallelism: 1, MaxParallelism: 128}}, c.Operators())
	require.Equal(t, 10*time.Minute, c.opts.Timeout)
	require.Equal(t, 1, c.opts.Retain)
	require.Equal(t, 1, c.opts.MaxConcurrent)
	require.Equal(t, int64(64<<20), c.opts.MaxInlineBytes)
	require.NotNil(t, c.opts.Now)
	require.NotNil(t, c.opts.Logger)
}

func TestNewDoesNoIO(t *testing.T) {
	fsys := newFS(t)
	newWorld(t, fsys, nil)
	require.Zero(t, fsys.Mutations())
}

func TestCountersIgnoreWhatTheyDoNotKnow(t *testing.T) {
	var c Counters
	c.Observe(Event{Type: eventTypes})
	require.Zero(t, c.Count(eventTypes))
	require.Zero(t, c.Count(EventCommitted))
}
