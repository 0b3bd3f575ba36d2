package embed_test

import (
	"fmt"
	"os"
	"os/exec"
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

func TestAProcessGoesOnFromTheCheckpointOfTheLastOne(t *testing.T) {
	dir := t.TempDir()
	for visit := 1; visit <= 3; visit++ {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), asProcess+"=1", "VISITS_DIR="+dir)
		out, err := process.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, fmt.Sprintf("visit %d is durable in checkpoint %d\n", visit, visit), string(out))
	}
}
