package architecture

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// bans are what the non-test files of the named layers may not use. A ban is on a call, not on a mention: `now: time.Now`
// as the documented default of an option is how the real clock comes in.
var bans = []ban{
	{
		layers: storageLayers, pkg: "time", names: []string{"Now", "Since", "Until"},
		instead: "ask the clock that the options carry",
	},
	{
		layers: libraries, pkg: "time", names: []string{"Sleep", "Tick"},
		instead: "select on ctx.Done() and a timer that is stopped",
	},
	{
		layers: libraries, pkg: "math/rand/v2", except: []string{"New", "NewPCG", "NewChaCha8", "NewZipf"},
		instead: "take a *rand.Rand or a source of ids from the options, so that a run can be repeated",
	},
	{
		layers: libraries, pkg: "fmt", names: []string{"Print", "Printf", "Println"},
		instead: "return the value or the error, or use the *slog.Logger of the options",
	},
	{
		layers: systemFree, pkg: "os",
		instead: "go through the core.FileSystem that the caller gave; the errors are in io/fs",
	},
	{
		layers: coreLayers, pkg: "path/filepath",
		instead: "use path: names have slashes on every system",
	},
	{
		layers: coreLayers, pkg: "net",
		instead: "leave transports to the program that embeds core",
	},
	{
		layers: libraries, pkg: "flag",
		instead: "take an Options struct; flags belong to programs",
	},
}

// coreLayers are portable; systemFree ones in addition touch no operating system (the suite counts open descriptors);
// storageLayers decide nothing by the wall clock.
var (
	coreLayers    = append([]string{"core/fstest"}, systemFree...)
	systemFree    = []string{"core", "core/metadata", "core/coordinator", "core/memfs", "core/faultfs"}
	storageLayers = []string{"core", "core/metadata", "core/coordinator", "statestore"}
)

// ban forbids functions of a package, by name or all but the excepted. With neither, the import itself is forbidden.
type ban struct {
	layers        []string
	pkg           string
	names, except []string
	instead       string
}

func (b ban) forbids(function string) bool {
	if len(b.except) > 0 {
		return ast.IsExported(function) && !slices.Contains(b.except, function)
	}
	return slices.Contains(b.names, function)
}

func (b ban) wholePackage() bool { return len(b.names)+len(b.except) == 0 }

// checkBans finds what a layer may not use.
func checkBans(t *tree) []finding {
	var found []finding
	for _, f := range t.goFiles(false) {
		l, _ := layerOf(f.dir())
		imports := importNames(f.goAST)
		for _, b := range bans {
			spec := imports[b.pkg]
			switch {
			case spec == nil || !slices.Contains(b.layers, l.dir):
			case b.wholePackage():
				found = append(found, finding{t.at(f, spec), "imports " + b.pkg, b.instead})
			default:
				found = append(found, bannedCalls(t, f, b, localName(spec))...)
			}
		}
	}
	return found
}

func bannedCalls(t *tree, f *file, b ban, local string) []finding {
	var found []finding
	ast.Inspect(f.goAST, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if function, ok := qualified(call.Fun, local); ok && b.forbids(function) {
			found = append(found, finding{t.at(f, call), fmt.Sprintf("calls %s.%s of %s", local, function, b.pkg), b.instead})
		}
		return true
	})
	return found
}

// qualified returns the function's name if expr is local.Function, generic or not.
func qualified(expr ast.Expr, local string) (string, bool) {
	if index, ok := expr.(*ast.IndexExpr); ok {
		expr = index.X
	}
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	x, ok := selector.X.(*ast.Ident)
	return selector.Sel.Name, ok && x.Name == local
}

// importNames maps imported packages to their specs.
func importNames(f *ast.File) map[string]*ast.ImportSpec {
	specs := map[string]*ast.ImportSpec{}
	for _, spec := range f.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
			specs[imported] = spec
		}
	}
	return specs
}

// localName is the name under which a file uses an imported package of the standard library.
func localName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	imported := strings.TrimSuffix(strings.Trim(spec.Path.Value, `"`), "/v2")
	return path.Base(imported)
}

// checkInit finds code of libraries that runs because of an import alone. What protoc wrote registers its messages.
func checkInit(t *tree) []finding {
	var found []finding
	for _, f := range t.goFiles(false) {
		l, _ := layerOf(f.dir())
		if !slices.Contains(libraries, l.dir) && !slices.Contains(coreLayers, l.dir) {
			continue
		}
		for _, decl := range f.goAST.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !ast.IsGenerated(f.goAST) {
				found = append(found, finding{t.at(f, fn), "declares init", "write a constructor, or a package variable that is a plain value"})
			}
		}
		for _, spec := range f.goAST.Imports {
			if spec.Name != nil && (spec.Name.Name == "_" || spec.Name.Name == ".") && spec.Path.Value != `"embed"` {
				found = append(found, finding{t.at(f, spec), "imports " + spec.Path.Value + " for its side effects or into its scope", "import it by name and call what is needed"})
			}
		}
	}
	return found
}
