package testenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEnginesAreThoseOfTheVersionThatWasAskedFor(t *testing.T) {
	for _, version := range []string{FlinkVersion, "1.20.3"} {
		require.Equal(t, version, string(RequireFlink(t, version, EngineSettings{}).Call(t, "version")))
	}
	for _, version := range []string{SparkVersion, "3.5.7"} {
		require.Equal(t, version, string(RequireSpark(t, version, EngineSettings{}).Call(t, "version")))
	}
}

func TestWhatAnEngineThrowsIsAnErrorAndTheEngineGoesOn(t *testing.T) {
	flink := RequireFlink(t, FlinkVersion, EngineSettings{})
	_, err := flink.Try(t, "no-such-command")
	var thrown *EngineError
	require.ErrorAs(t, err, &thrown)
	require.ErrorContains(t, err, "no command no-such-command")
	require.Equal(t, FlinkVersion, string(flink.Call(t, "version")))
}
