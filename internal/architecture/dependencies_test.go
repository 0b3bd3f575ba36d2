package architecture

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dependencies are the modules of others that whoever builds these packages gets, on all systems we support together. A
// longer list is a decision; it is taken here.
var dependencies = []struct {
	packages, modules []string
}{
	{
		[]string{"core", "localfs"},
		[]string{"github.com/google/uuid", "golang.org/x/sys"},
	},
	{
		[]string{"core/metadata", "core/coordinator", "core/memfs", "core/faultfs"},
		[]string{"github.com/google/uuid"},
	},
	{
		[]string{"cmd/hdfsckpt"},
		[]string{
			"github.com/google/uuid",
			"github.com/spf13/cobra",
			"github.com/spf13/pflag", // of cobra
			"golang.org/x/sys",
			"golang.org/x/term",
			// Of statestore.
			"github.com/klauspost/compress",
			"github.com/pierrec/lz4/v4",
			// Of hdfsfs and kerberos.
			"github.com/colinmarc/hdfs/v2",
			"github.com/hashicorp/go-uuid",
			"github.com/jcmturner/aescts/v2",
			"github.com/jcmturner/dnsutils/v2",
			"github.com/jcmturner/gofork",
			"github.com/jcmturner/goidentity/v6",
			"github.com/jcmturner/gokrb5/v8",
			"github.com/jcmturner/rpc/v2",
			"golang.org/x/crypto",
			"golang.org/x/net",
			"google.golang.org/protobuf",
		},
	},
}

func TestDependencies(t *testing.T) {
	for _, d := range dependencies {
		t.Run(strings.Join(d.packages, " "), func(t *testing.T) {
			got := map[string]bool{}
			for _, goos := range []string{"linux", "darwin"} {
				for _, m := range modulesOf(t, goos, d.packages) {
					got[m] = true
				}
			}
			for m := range got {
				if !slices.Contains(d.modules, m) {
					t.Errorf("%v now need %s; instead: use the standard library, or add it to the list in internal/architecture/dependencies_test.go with a reason", d.packages, m)
				}
			}
		})
	}
}

// modulesOf lists the modules of the packages' imports, direct and indirect, except the standard library and this module.
func modulesOf(t *testing.T, goos string, packages []string) []string {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	list := exec.Command("go", args...)
	list.Dir = root
	list.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	require.NoError(t, err, stderr.String())
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	return slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == module })
}
