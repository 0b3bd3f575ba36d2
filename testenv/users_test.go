package testenv

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// This holds for every cluster that Require gives, whoever runs it: here, in images, or somebody else.
func TestEveryClusterServesItsUsers(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
	}{{"plain", Options{}}, {"Kerberos", Options{Kerberos: true}}} {
		t.Run(tt.name, func(t *testing.T) {
			c := Require(t, tt.o)
			name := path.Join(c.TempDir(t), "file")
			before, err := c.Calls(t.Context())
			if !errors.Is(err, ErrOwn) {
				require.NoError(t, err)
			}
			content := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
			writeAndRead(t, c, "alice", name, content)
			if c.Own() {
				return // it is only known to us as one user, and from outside
			}
			after, err := c.Calls(t.Context())
			require.NoError(t, err)
			t.Logf("calls: %v", after.Since(before))
			require.Positive(t, after.Since(before)["Create"])

			report, err := c.Fsck(t.Context(), name)
			require.NoError(t, err)
			require.Contains(t, report, "Live_repl=3", "each of the DataNodes has it")
			require.Equal(t, 3, strings.Count(report, "DatanodeInfoWithStorage["))

			require.ErrorIs(t, client(t, c, "bob").Chmod(name, 0o777), fs.ErrPermission, "it is alice's")
			require.NoError(t, client(t, c, "").Chmod(name, 0o777), "the superuser may do anything")
		})
	}
}
