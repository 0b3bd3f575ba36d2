package embed_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// asProcess makes the test binary run the example alone, once, as a program would.
const asProcess = "EMBED_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		Example()
		return
	}
	dir, err := os.MkdirTemp("", "visits")
	check(err)
	check(os.Setenv("VISITS_DIR", dir))
	code := m.Run()
	check(os.RemoveAll(dir))
	os.Exit(code) //nolint:forbidigo // what TestMain is for
}

func TestAProcessGoesOnFromTheCheckpointOfTheLastOneHoweverTheDirectoryIsSpelled(t *testing.T) {
	dir := t.TempDir()
	for i, spelled := range []string{dir, dir + "/", ".", "../" + filepath.Base(dir) + "/"} {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Dir = dir
		process.Env = append(os.Environ(), asProcess+"=1", "VISITS_DIR="+spelled)
		out, err := process.CombinedOutput()
		require.NoError(t, err, "%s: %s", spelled, out)
		visit := i + 1
		require.Equal(t, fmt.Sprintf("visit %d is durable in checkpoint %d\n", visit, visit), string(out))
	}
}
