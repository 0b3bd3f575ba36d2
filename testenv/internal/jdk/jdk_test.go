package jdk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMajorVersionIsReadFromWhatJavaPrints(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int
	}{
		{"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime …", 17},
		{"Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version \"21\" 2023-09-19", 21},
		{"java version \"1.8.0_402\"", 1},
		{"The operation couldn’t be completed. Unable to locate a Java Runtime.", 0},
		{"", 0},
	} {
		got, ok := majorVersion(tt.text)
		require.Equal(t, tt.want, got, tt.text)
		require.Equal(t, tt.want != 0, ok, tt.text)
	}
}

func TestAJavaThatIsTooOldCountsAsMissing(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, "bin"), 0o700))
	script := "#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n"
	require.NoError(t, os.WriteFile(filepath.Join(home, "bin", "java"), []byte(script), 0o700))
	t.Setenv("JAVA_HOME", home)
	_, err := FindJava(t.Context())
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "11.0.2")

	t.Setenv("JAVA_HOME", "")
	t.Setenv("PATH", home)
	_, err = FindJava(t.Context())
	require.ErrorIs(t, err, ErrMissing)
}

func TestOnceMakesAFolderInFullOrNotAtAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	fill := func(result error) func(string) error {
		return func(tmp string) error {
			return errors.Join(os.WriteFile(filepath.Join(tmp, "file"), nil, 0o600), result)
		}
	}
	failed := errors.New("failed")
	require.ErrorIs(t, Once(dir, fill(failed)), failed)
	require.NoDirExists(t, dir)
	require.NoError(t, Once(dir, fill(nil)))
	require.FileExists(t, filepath.Join(dir, "file"))
	require.NoError(t, Once(dir, fill(failed)), "it is there")
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, left, 1)
}
