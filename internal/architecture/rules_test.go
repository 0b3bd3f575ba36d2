package architecture

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// importing is a Go file of package p that imports the quoted paths and has the given body.
func importing(body string, paths ...string) string {
	var b strings.Builder
	b.WriteString("package p\n\n")
	for _, p := range paths {
		fmt.Fprintf(&b, "import %s\n", p)
	}
	return b.String() + body
}

func ours(folder string) string { return `"` + module + "/" + folder + `"` }

// TestRules runs each rule on small trees: on some it must find exactly what is named, on others nothing.
func TestRules(t *testing.T) {
	for _, tt := range []struct {
		name  string
		check func(*tree) []finding
		files map[string]string
		want  []string // beginnings of the findings, in any order
	}{
		{"layers: arrows along the design", checkLayers, map[string]string{
			"core/a.go":                   importing("", `"io/fs"`, `"github.com/google/uuid"`),
			"core/a_test.go":              importing("", ours("core/memfs"), ours("localfs"), ours("testenv/hdfs"), `"github.com/stretchr/testify/require"`),
			"core/metadata/internal/a.go": importing("", ours("core")),
			"core/metadata/a.go":          importing("", ours("core"), ours("core/metadata/internal")),
			"core/coordinator/a.go":       importing("", ours("core"), ours("core/metadata")),
			"core/fstest/a.go":            importing("", ours("core"), `"github.com/stretchr/testify/require"`),
			"localfs/a.go":                importing("", ours("core"), `"golang.org/x/sys/unix"`),
			"hdfsfs/a.go":                 importing("", ours("core"), ours("kerberos")),
			"cmd/hdfsckpt/a.go":           importing("", ours("fsurl"), ours("core/metadata"), `"github.com/spf13/cobra"`),
			"examples/wordcount/a.go":     importing("", ours("core/coordinator"), ours("localfs")),
			"tools/go.mod":                "module tools\n",
			"tools/a.go":                  importing("", `"example.com/anything"`),
			"core/testdata/a.go":          "not Go",
		}, nil},
		{"layers: arrows against the design", checkLayers, map[string]string{
			"core/a.go":             importing("", ours("core/metadata"), ours("core/memfs"), ours("localfs"), `"golang.org/x/sys/unix"`),
			"core/metadata/a.go":    importing("", ours("core/coordinator"), `"golang.org/x/sys/unix"`),
			"core/coordinator/a.go": importing("", ours("fsurl"), ours("localfs")),
			"localfs/a.go":          importing("", ours("hdfsfs"), `"github.com/stretchr/testify/require"`),
			"kerberos/a.go":         importing("", ours("core"), ours("hdfsfs")),
			"fsurl/a.go":            importing("", ours("testenv")),
			"cmd/hdfsckpt/a.go":     importing("", ours("core/faultfs"), ours("testenv")),
			"core/a_test.go":        importing("", ours("hdfsfs"), `"example.com/other"`),
		}, []string{
			"core/a.go:3: imports github.com/hdfsckpt/hdfsckpt/core/metadata; instead: let the arrow point the other way",
			"core/a.go:4: imports github.com/hdfsckpt/hdfsckpt/core/memfs; instead: use it from _test.go files only",
			"core/a.go:5: imports github.com/hdfsckpt/hdfsckpt/localfs; instead: take a core.FileSystem",
			"core/a.go:6: imports golang.org/x/sys/unix; instead: use the standard library",
			"core/metadata/a.go:3: imports github.com/hdfsckpt/hdfsckpt/core/coordinator",
			"core/metadata/a.go:4: imports golang.org/x/sys/unix",
			"core/coordinator/a.go:3: imports github.com/hdfsckpt/hdfsckpt/fsurl",
			"core/coordinator/a.go:4: imports github.com/hdfsckpt/hdfsckpt/localfs",
			"localfs/a.go:3: imports github.com/hdfsckpt/hdfsckpt/hdfsfs",
			"localfs/a.go:4: imports github.com/stretchr/testify/require",
			"kerberos/a.go:3: imports github.com/hdfsckpt/hdfsckpt/core",
			"kerberos/a.go:4: imports github.com/hdfsckpt/hdfsckpt/hdfsfs",
			"fsurl/a.go:3: imports github.com/hdfsckpt/hdfsckpt/testenv",
			"cmd/hdfsckpt/a.go:3: imports github.com/hdfsckpt/hdfsckpt/core/faultfs",
			"cmd/hdfsckpt/a.go:4: imports github.com/hdfsckpt/hdfsckpt/testenv",
			"core/a_test.go:3: imports github.com/hdfsckpt/hdfsckpt/hdfsfs",
			"core/a_test.go:4: imports example.com/other",
		}},
		{"layers: a folder without a place", checkLayers, map[string]string{
			"util/a.go": importing(""),
		}, []string{"util/a.go: its folder has no place in the design"}},

		{"bans: a clock as a value, a seeded source, text for a writer, tests, programs", checkBans, map[string]string{
			"core/a.go":         importing("var now = time.Now\nvar r = rand.New(rand.NewPCG(1, 2))\nvar n = r.IntN(3)\nvar s = fmt.Sprint(n)", `"time"`, `"math/rand/v2"`, `"fmt"`),
			"core/a_test.go":    importing("var now = time.Now()", `"time"`, `"os"`),
			"localfs/a.go":      importing("var now = time.Now()", `"time"`, `"os"`, `"path/filepath"`),
			"examples/x/a.go":   importing("func f() { fmt.Println(1) }", `"fmt"`, `"flag"`),
			"core/memfs/a.go":   importing("var t = time.Unix(1, 0)", `"time"`),
			"core/nottime/a.go": importing("var x = time.Now()", `time "example.com/other"`),
		}, nil},
		{"bans: what core, statestore and libraries may not use", checkBans, map[string]string{
			"core/a.go":         importing("var x = time.Now()\nvar y = time.Since(x)\nvar z = rand.N(3)\nvar u = rand.N[int](3)", `"time"`, `"math/rand/v2"`),
			"core/b.go":         importing("func f() { clock.Sleep(1); fmt.Printf(``) }", `clock "time"`, `"fmt"`),
			"core/memfs/a.go":   importing("", `"os"`, `"path/filepath"`, `"net"`),
			"statestore/x/a.go": importing("var x = time.Until(y)", `"time"`),
			"localfs/a.go":      importing("func f() { time.Sleep(1) }", `"time"`, `"flag"`),
		}, []string{
			"core/a.go:5: calls time.Now of time; instead: ask the clock",
			"core/a.go:6: calls time.Since",
			"core/a.go:7: calls rand.N of math/rand/v2; instead: take a *rand.Rand",
			"core/a.go:8: calls rand.N of math/rand/v2",
			"core/b.go:5: calls clock.Sleep of time; instead: select on ctx.Done()",
			"core/b.go:5: calls fmt.Printf",
			"core/memfs/a.go:3: imports os; instead: go through the core.FileSystem",
			"core/memfs/a.go:4: imports path/filepath; instead: use path",
			"core/memfs/a.go:5: imports net",
			"statestore/x/a.go:4: calls time.Until",
			"localfs/a.go:5: calls time.Sleep",
			"localfs/a.go:4: imports flag",
		}},

		{"init: constructors, methods named init, embedded files, programs", checkInit, map[string]string{
			"core/a.go":         importing("type t struct{}\nfunc (t) init() {}\nfunc New() {}", `_ "embed"`),
			"cmd/hdfsckpt/a.go": importing("func init() {}", `_ "net/http/pprof"`),
			"core/a_test.go":    importing("func init() {}"),
		}, nil},
		{"init: code that runs because of an import", checkInit, map[string]string{
			"core/memfs/a.go": importing("func init() {}", `_ "image/png"`, `. "fmt"`),
		}, []string{
			"core/memfs/a.go:5: declares init; instead: write a constructor",
			`core/memfs/a.go:3: imports "image/png" for its side effects`,
			`core/memfs/a.go:4: imports "fmt" for its side effects or into its scope`,
		}},

		{"lengths: at the limit, above it in tests, above it with a reason", checkLengths(map[string]string{"core/c.go:T.F": "a table"}), map[string]string{
			"core/a.go":        importing("func f() {" + strings.Repeat("\n", maxFunctionLines-1) + "}\n"),
			"core/b.go":        importing(strings.Repeat("\n", maxFileLines-2)),
			"core/b_test.go":   importing("func f() {" + strings.Repeat("\n", maxFileLines) + "}\n"),
			"core/fstest/a.go": importing("func f() {" + strings.Repeat("\n", maxFunctionLines) + "}\n"),
			"core/c.go":        importing("type T[K any] struct{}\nfunc (*T[K]) F() {" + strings.Repeat("\n", maxFunctionLines) + "}\n"),
		}, nil},
		{"lengths: one line too many, a reason too many", checkLengths(map[string]string{"core/gone.go": "a table"}), map[string]string{
			"core/a.go":        importing("func f() {" + strings.Repeat("\n", maxFunctionLines) + "}\n"),
			"core/b.go":        importing(strings.Repeat("\n", maxFileLines-1)),
			"core/fstest/a.go": importing(strings.Repeat("\n", maxFileLines-1)),
		}, []string{
			"core/a.go:3: core/a.go:f has 71 lines, more than 70; instead: name its steps",
			"core/b.go: core/b.go has 501 lines, more than 500; instead: split it",
			"core/fstest/a.go: core/fstest/a.go has 501 lines",
			"core/gone.go: is on the list of long ones but is short or gone",
		}},

		{"sizes: at the limit", checkSizes, map[string]string{
			"core/testdata/a": strings.Repeat("\x00", maxFileSize),
		}, nil},
		{"sizes: a byte too many", checkSizes, map[string]string{
			"core/testdata/a": strings.Repeat("\x00", maxFileSize+1),
		}, []string{"core/testdata/a: has 2097153 bytes, more than 2097152; instead: generate it"}},

		{"words: names that only look alike", checkWords, map[string]string{
			"core/a.go":   "package p\n\n// The shared/ folder, ../shared/0b7c; see FLINK-123; hdfs://host/network/a; its issues are 3.\n",
			"core/b.bin":  "\x00 TO" + "DO",
			"README.md":   "docs.example.org/root\n",
			"core/go.sum": "XX" + "X\n",
		}, nil},
		{"words: what has no place here", checkWords, map[string]string{
			"core/a.go": "package p\n\n// TO" + "DO: write it\n// See iss" + "ue #12.\n",
			"Makefile":  "x:\n\tcurl https://crates" + ".io/x\n\tcp /ro" + "ot/x .\n\tcp ../sha" + "red/golden/y .\n",
		}, []string{
			`core/a.go:3: holds " TO` + `DO"`,
			`core/a.go:4: holds "iss` + `ue #12"`,
			"Makefile:2: holds \"crates" + ".io\", the host of a package registry; instead: call the ordinary client",
			"Makefile:3: holds \" /ro" + "ot/\", a path of one machine",
			"Makefile:4: holds \"sha" + "red/golden\", a path of one machine",
		}},

		{"changelog: entries in form", checkChangelog, map[string]string{
			"changelog/README.md":              "anything",
			"changelog/TEMPLATE.md":            "Fix: Say what was wrong\n\nAt least eight words that say what changes for you.\n",
			"changelog/unreleased/a-b2.md":     "Feature: Do more\n\nIt can now be done, and this is how it is done.\n",
			"changelog/1.0.0/something-old.md": "Removal: Do less\n\nIt is gone since nobody used it; use the other one.\n",
		}, nil},
		{"changelog: entries out of form", checkChangelog, map[string]string{
			"changelog/unreleased/A_b.md": "Feature: Do more\n\nIt can now be done, and this is how it is done.\n",
			"changelog/b.md":              "Feature: Do more\n\nIt can now be done, and this is how it is done.\n",
			"changelog/unreleased/c.md":   "Enhancement: Do more.\n\nIt can now be done, and this is how it is done.\n",
			"changelog/unreleased/d.md":   "Feature: Do more\n",
		}, []string{
			"changelog/unreleased/A_b.md: is not named",
			"changelog/b.md: is not named",
			"changelog/unreleased/c.md: does not begin with Feature",
			"changelog/unreleased/d.md: does not say, after an empty line, what changes",
		}},

		{"links: to files, folders, places in a page, other sites", checkLinks, map[string]string{
			"docs/README.md": "[a](design.md) [b](../core) [c](#here) [d](design.md#there) [e](https://example.org/x) [f](..)\n",
			"docs/design.md": "", "core/a.go": "package p\n",
		}, nil},
		{"links: to nothing", checkLinks, map[string]string{
			"docs/README.md": "[a](design.md)\n",
		}, []string{"docs/README.md: links to design.md, which is not there"}},

		{"example: none yet, or the same", checkReadmeExample, map[string]string{
			"README.md": "text\n" + exampleBegin + "```go\nx := 1\nif x > 0 {\n\tfmt.Println(x)\n}\n```\n" + exampleEnd,
			exampleFile: "package p_test\n\nimport \"fmt\"\n\nfunc Example() {\n\tx := 1\n\tif x > 0 {\n\t\tfmt.Println(x)\n\t}\n\t// Output: 1\n}\n",
		}, nil},
		{"example: another one", checkReadmeExample, map[string]string{
			"README.md": "text\n" + exampleBegin + "```go\nx := 2\n```\n" + exampleEnd,
			exampleFile: "package p_test\n\nfunc Example() {\n\tx := 1\n}\n",
		}, []string{"README.md: does not show the Example of examples/embed/example_test.go; instead: run `make readme`"}},
		{"example: no place for it", checkReadmeExample, map[string]string{
			"README.md": "text\n",
			exampleFile: "package p_test\n\nfunc Example() {\n\tx := 1\n}\n",
		}, []string{"README.md: does not show"}},
		{"example: no function", checkReadmeExample, map[string]string{
			"README.md": "", exampleFile: "package p_test\n",
		}, []string{exampleFile + ": no func Example"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			var names []string
			for name, text := range tt.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
				names = append(names, name)
			}
			tree, err := load(fsys, names)
			require.NoError(t, err)

			rest := slices.Clone(tt.want)
			for _, f := range tt.check(tree) {
				i := slices.IndexFunc(rest, func(want string) bool { return strings.HasPrefix(f.String(), want) })
				if i < 0 {
					t.Errorf("found, but not expected: %s", f)
					continue
				}
				rest = slices.Delete(rest, i, i+1)
			}
			require.Empty(t, rest, "expected, but not found")
		})
	}
}
