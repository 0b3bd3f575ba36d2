package architecture

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the embedding example into README.md, and docs/capabilities.md")

// checkLinks finds links between the project's pages that lead nowhere.
func checkLinks(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if !strings.HasSuffix(f.name, ".md") || strings.Contains("/"+f.name, "/testdata/") {
			continue
		}
		for _, match := range markdownLink.FindAllStringSubmatch(f.text, -1) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			if !t.exists(path.Join(f.dir(), target)) {
				found = append(found, finding{f.name, "links to " + match[1] + ", which is not there", "link to a file or folder of the project"})
			}
		}
	}
	return found
}

var markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)

func (t *tree) exists(name string) bool {
	if t.names[name] {
		return true
	}
	for other := range t.names {
		if strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return name == "."
}

const (
	readmeFile   = "README.md"
	exampleFile  = "examples/embed/example_test.go"
	exampleBegin = "<!-- example:begin -->\n"
	exampleEnd   = "<!-- example:end -->\n"
)

// checkReadmeExample compares the embedding example in README.md with the body of the Example that is compiled and run.
func checkReadmeExample(t *tree) []finding {
	readme, example := t.text(readmeFile), t.text(exampleFile)
	if example == "" {
		return nil
	}
	want, err := exampleBlock(example)
	if err != nil {
		return []finding{{exampleFile, err.Error(), "declare func Example there"}}
	}
	if _, got, _, err := cutExample(readme); err != nil || got != want {
		return []finding{{readmeFile, "does not show the Example of " + exampleFile, "run `make readme`"}}
	}
	return nil
}

func (t *tree) text(name string) string {
	for _, f := range t.files {
		if f.name == name {
			return f.text
		}
	}
	return ""
}

// cutExample splits README.md around the block between the markers.
func cutExample(readme string) (before, block, after string, err error) {
	before, rest, ok := strings.Cut(readme, exampleBegin)
	if !ok {
		return "", "", "", fmt.Errorf("no line %q", exampleBegin)
	}
	block, after, ok = strings.Cut(rest, exampleEnd)
	if !ok {
		return "", "", "", fmt.Errorf("no line %q", exampleEnd)
	}
	return before + exampleBegin, block, exampleEnd + after, nil
}

// exampleBlock is the body of func Example as a Markdown block, without the expected output.
func exampleBlock(source string) (string, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, exampleFile, source, parser.ParseComments)
	if err != nil {
		return "", err
	}
	for _, decl := range parsed.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "Example" {
			continue
		}
		body := source[fset.Position(fn.Body.Lbrace).Offset+1 : fset.Position(fn.Body.Rbrace).Offset]
		body, _, _ = strings.Cut(body, "\n\t// Output:")
		return "```go\n" + strings.TrimSpace(strings.ReplaceAll(body, "\n\t", "\n")) + "\n```\n", nil
	}
	return "", fmt.Errorf("no func Example")
}

// TestReadmeExample also writes the example into README.md, when it runs with -update.
func TestReadmeExample(t *testing.T) {
	project := loadProject(t)
	before, _, after, err := cutExample(project.text(readmeFile))
	require.NoError(t, err)
	if *update {
		block, err := exampleBlock(project.text(exampleFile))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path.Join(root, readmeFile), []byte(before+block+after), 0o644))
		return
	}
	require.Empty(t, checkReadmeExample(project))
}
