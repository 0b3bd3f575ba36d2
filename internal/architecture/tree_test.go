package architecture

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// module is the path of the module that the rules are about.
const module = "github.com/hdfsckpt/hdfsckpt"

// rule checks one thing. Its name is that of its subtest.
type rule struct {
	name  string
	check func(*tree) []finding
}

// finding is a broken rule: where, what, and what to do instead.
type finding struct {
	at, problem, instead string
}

func (f finding) String() string {
	return fmt.Sprintf("%s: %s; instead: %s", f.at, f.problem, f.instead)
}

// tree is what rules look at: the text files of the project, Go files parsed.
type tree struct {
	fset  *token.FileSet
	names map[string]bool // every file, binary ones included
	files []*file
	large map[string]int64 // files that were not read, with their sizes
}

// file is a text file. Go is nil for other languages, for test data and for modules of their own.
type file struct {
	name  string // slash-separated, relative to the root
	text  string
	goAST *ast.File
}

func (f *file) dir() string  { return path.Dir(f.name) }
func (f *file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// at is the place of a node for a finding.
func (t *tree) at(f *file, node ast.Node) string {
	return fmt.Sprintf("%s:%d", f.name, t.fset.Position(node.Pos()).Line)
}

// goFiles are the parsed files, with or without tests.
func (t *tree) goFiles(tests bool) []*file {
	return slices.DeleteFunc(slices.Clone(t.files), func(f *file) bool { return f.goAST == nil || f.isTest() && !tests })
}

// load reads the named files of fsys, except large ones.
func load(fsys fs.FS, names []string) (*tree, error) {
	t := &tree{fset: token.NewFileSet(), names: map[string]bool{}, large: map[string]int64{}}
	for _, name := range names {
		t.names[name] = true
	}
	for _, name := range names {
		info, err := fs.Stat(fsys, name)
		if err != nil {
			return nil, err
		}
		if info.Size() > maxFileSize {
			t.large[name] = info.Size()
			continue
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
			continue
		}
		f := &file{name: name, text: string(data)}
		if strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/") && !t.inOtherModule(name) {
			if f.goAST, err = parser.ParseFile(t.fset, name, data, parser.ParseComments); err != nil {
				return nil, err
			}
		}
		t.files = append(t.files, f)
	}
	return t, nil
}

func (t *tree) inOtherModule(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if t.names[dir+"/go.mod"] {
			return true
		}
	}
	return false
}

const root = "../.."

// loadProject reads this project: what git tracks or would track, or, outside a checkout, everything that is not hidden.
func loadProject(tb testing.TB) *tree {
	tb.Helper()
	fsys := os.DirFS(root)
	names, err := trackedFiles()
	if err != nil {
		tb.Logf("not a git checkout (%v): looking at all files", err)
		names, err = allFiles(fsys)
	}
	require.NoError(tb, err)
	t, err := load(fsys, names)
	require.NoError(tb, err)
	require.NotEmpty(tb, t.goFiles(false))
	return t
}

func trackedFiles() ([]string, error) {
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	// A file that was deleted but not yet committed is listed too.
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(path.Join(root, name))
		return err != nil || !info.Mode().IsRegular()
	}), nil
}

func allFiles(fsys fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci":
			return fs.SkipDir
		case d.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
