package architecture

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// changelogTemplate explains the form of an entry and is itself a valid one.
const changelogTemplate = "changelog/TEMPLATE.md"

var (
	entryName  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*\.md$`)
	entryTitle = regexp.MustCompile(`^(Feature|Change|Fix|Removal|Security): \S.*[^.\s]$`)
)

const maxTitle = 90

// checkChangelog finds entries, one file per change that a user can see, that do not have the form of the template.
func checkChangelog(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if !strings.HasPrefix(f.name, "changelog/") || f.name == "changelog/README.md" {
			continue
		}
		for _, problem := range entryProblems(f) {
			found = append(found, finding{f.name, problem, "copy " + changelogTemplate})
		}
	}
	return found
}

func entryProblems(f *file) []string {
	var problems []string
	// changelog/TEMPLATE.md, or changelog/<release>/<name>.md
	if f.name != changelogTemplate && (strings.Count(f.name, "/") != 2 || !entryName.MatchString(path.Base(f.name))) {
		problems = append(problems, "is not named unreleased/lower-case-words.md")
	}
	title, body, _ := strings.Cut(f.text, "\n")
	if !entryTitle.MatchString(title) || len(title) > maxTitle {
		problems = append(problems, fmt.Sprintf("does not begin with Feature, Change, Fix, Removal or Security, a colon and a title of at most %d bytes without full stop", maxTitle))
	}
	if !strings.HasPrefix(body, "\n") || len(strings.Fields(body)) < 8 {
		problems = append(problems, "does not say, after an empty line, what changes for the user")
	}
	return problems
}
