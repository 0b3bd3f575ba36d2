package architecture

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// layer says what the non-test files of a folder, and of the folders below it without a layer of their own, may import
// beside the standard library. A folder without a layer is a finding: a new part needs a place in the design.
type layer struct {
	dir    string
	layers []string // other layers of this project
	others []string // modules of others, or prefixes of them
}

// layers are the arrows of the design. Everything points at core.
var layers = []layer{
	{dir: "core", others: []string{"github.com/google/uuid"}},
	{dir: "core/metadata", layers: []string{"core"}, others: []string{"github.com/google/uuid"}},
	{dir: "core/coordinator", layers: []string{"core", "core/metadata"}, others: []string{"github.com/google/uuid"}},
	{dir: "core/memfs", layers: []string{"core"}},
	{dir: "core/faultfs", layers: []string{"core"}},
	{dir: "core/fstest", layers: []string{"core"}, others: []string{"github.com/stretchr/testify"}},
	{dir: "internal/calls"},
	{dir: "internal/blocks", layers: []string{"internal/calls"}},
	{dir: "localfs", layers: []string{"core", "internal/blocks", "internal/calls"}, others: []string{"golang.org/x/sys"}},
	{dir: "kerberos", others: []string{"github.com/jcmturner"}},
	{dir: "hdfsfs", layers: []string{"core", "kerberos", "internal/blocks", "internal/calls"}, others: []string{"github.com/colinmarc/hdfs", "github.com/jcmturner", "golang.org/x/sys", "google.golang.org/protobuf"}},
	{dir: "statestore", layers: []string{"core"}, others: []string{"github.com/google/uuid", "github.com/klauspost/compress", "github.com/pierrec/lz4", "github.com/cockroachdb/pebble"}},
	{dir: "fsurl", layers: []string{"core", "localfs", "hdfsfs", "kerberos"}},
	{dir: "cmd", layers: libraries, others: []string{"github.com/spf13/cobra", "golang.org/x/term"}},
	{dir: "examples", layers: libraries},
	{dir: "bench", layers: libraries},
	{dir: "testenv", layers: libraries, others: []string{"github.com/stretchr/testify", "github.com/spf13/cobra", "github.com/colinmarc/hdfs", "github.com/jcmturner"}},
	{dir: "internal/architecture", layers: []string{"hdfsfs"}}, // what it declares
}

// libraries are the layers that programs are built from.
var libraries = []string{"core", "core/metadata", "core/coordinator", "localfs", "kerberos", "hdfsfs", "statestore", "fsurl"}

// Tests may import more than the code they test: fakes, the conformance suite, an implementation to run on, real servers.
var (
	testLayers = []string{"core", "core/metadata", "core/coordinator", "core/memfs", "core/faultfs", "core/fstest", "localfs", "testenv"}
	testOthers = []string{"github.com/stretchr/testify", "github.com/google/uuid", "golang.org/x/sys"}
)

// checkLayers finds imports against the arrows. Go itself refuses cycles.
func checkLayers(t *tree) []finding {
	var found []finding
	for _, f := range t.goFiles(true) {
		l, ok := layerOf(f.dir())
		if !ok {
			found = append(found, finding{f.name, "its folder has no place in the design", "give it a layer in internal/architecture/layers_test.go, with what it may import"})
			continue
		}
		for _, spec := range f.goAST.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err == nil && !l.allows(imported, f.isTest()) {
				found = append(found, finding{t.at(f, spec), "imports " + imported, insteadOfImport(l, imported)})
			}
		}
	}
	return found
}

func layerOf(dir string) (layer, bool) {
	for ; dir != "."; dir = path.Dir(dir) {
		for _, l := range layers {
			if l.dir == dir {
				return l, true
			}
		}
	}
	return layer{}, false
}

func (l layer) allows(imported string, test bool) bool {
	if isStandard(imported) {
		return true
	}
	if folder, ok := strings.CutPrefix(imported, module+"/"); ok {
		target, ok := layerOf(folder)
		return ok && (target.dir == l.dir || slices.Contains(l.layers, target.dir) || test && slices.Contains(testLayers, target.dir))
	}
	return within(l.others, imported) || test && within(testOthers, imported)
}

func insteadOfImport(l layer, imported string) string {
	folder, ours := strings.CutPrefix(imported, module+"/")
	switch {
	case !ours:
		return fmt.Sprintf("use the standard library, or one of %q; a new dependency needs a reason and an entry in the layer %s", l.others, l.dir)
	case within([]string{"testenv", "core/memfs", "core/faultfs", "core/fstest"}, folder):
		return "use it from _test.go files only"
	case within([]string{"localfs", "hdfsfs", "fsurl"}, folder):
		return "take a core.FileSystem or a core.Opener from the caller"
	}
	return fmt.Sprintf("let the arrow point the other way: %s may import %q", l.dir, l.layers)
}

// isStandard: the first element of a path outside the standard library has a dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// within reports whether name is one of dirs or below one.
func within(dirs []string, name string) bool {
	for _, dir := range dirs {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}
