package architecture

import (
	"fmt"
	"go/ast"
	"strings"
)

const (
	maxFileLines     = 500
	maxFunctionLines = 70
	maxFileSize      = 2 << 20

	suiteDir = "core/fstest"
)

// longOnes are the files ("core/x.go") and functions ("core/x.go:Type.Method") that may be longer, each with its reason. An
// entry that is not needed any more is a finding.
var longOnes = map[string]string{}

// checkLengths finds files and functions that are too long to be read at once. Tests are excepted, what tools wrote, and the
// functions of the conformance suite: they are tables whose entries are tests.
func checkLengths(allowed map[string]string) func(*tree) []finding {
	return func(t *tree) []finding {
		var found []finding
		needed := map[string]bool{}
		report := func(what, at string, lines, limit int, instead string) {
			if lines <= limit {
				return
			}
			needed[what] = true
			if allowed[what] == "" {
				found = append(found, finding{at, fmt.Sprintf("%s has %d lines, more than %d", what, lines, limit), instead})
			}
		}
		for _, f := range t.goFiles(false) {
			if ast.IsGenerated(f.goAST) {
				continue
			}
			report(f.name, f.name, strings.Count(f.text, "\n"), maxFileLines, "split it by subject")
			for _, decl := range f.goAST.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && f.dir() != suiteDir {
					lines := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
					report(f.name+":"+functionName(fn), t.at(f, fn), lines, maxFunctionLines, "name its steps as functions")
				}
			}
		}
		for what := range allowed {
			if !needed[what] {
				found = append(found, finding{what, "is on the list of long ones but is short or gone", "remove it from longOnes"})
			}
		}
		return found
	}
}

// checkSizes finds files, test data included, that a clone should not have to carry.
func checkSizes(t *tree) []finding {
	var found []finding
	for name, size := range t.large {
		found = append(found, finding{
			name, fmt.Sprintf("has %d bytes, more than %d", size, maxFileSize),
			"generate it in the test, or keep the part of it that matters",
		})
	}
	return found
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if index, ok := receiver.(*ast.IndexExpr); ok {
		receiver = index.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}
