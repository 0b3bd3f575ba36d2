package architecture

import (
	"fmt"
	"regexp"
	"strings"
)

// words are what no file of the project may hold: it speaks of itself only, and works on every machine. This file, which
// has to spell them, is excepted.
var words = []struct {
	what    string
	pattern *regexp.Regexp
	instead string
}{
	{
		"a path of one machine", regexp.MustCompile(`(^|[^A-Za-z0-9_.])/(work|farm|root)/|\bshared/(DESIGN|reference|golden|interop|hooks)\b`),
		"use a path inside the project, or a temporary folder",
	},
	{
		"the host of a package registry", regexp.MustCompile(`\b(proxy|sum)\.golang\.org\b|\bpypi\.org\b|\bpythonhosted\.org\b|\bcrates\.io\b|\bregistry\.npmjs\.org\b|\brepo1?\.maven\b|\bdeb\.debian\.org\b`),
		"call the ordinary client, which knows where to ask",
	},
	{
		"the number of an issue", regexp.MustCompile(`(?i)\bissues? #?[0-9]+\b`),
		"give the reason itself",
	},
	{
		"a mark of unfinished work", regexp.MustCompile(`(^|[^.\w])(TODO|FIXME|XXX)\b`),
		"finish it, or say in the docs what is not there",
	},
}

const wordsFile = "internal/architecture/words_test.go"

// generated files hold what tools wrote; their words are not ours.
var generated = regexp.MustCompile(`(^|/)(go\.sum|LICENSE)$`)

// checkWords finds words that have no place in the project.
func checkWords(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if f.name == wordsFile || generated.MatchString(f.name) {
			continue
		}
		number := 0
		for line := range strings.Lines(f.text) {
			number++
			for _, w := range words {
				if hit := w.pattern.FindString(line); hit != "" {
					found = append(found, finding{fmt.Sprintf("%s:%d", f.name, number), fmt.Sprintf("holds %q, %s", hit, w.what), w.instead})
				}
			}
		}
	}
	return found
}
