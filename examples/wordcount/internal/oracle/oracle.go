// Package oracle counts words in the simplest way there is, sharing no code with the job, so that the job's result can be
// compared with it.
package oracle

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

var endings = []string{".go", ".s", ".txt", ".md", ".h", ".c", ".mod", ".html"}

// Count counts the words of the text files below root in one pass and multiplies every count by passes.
func Count(root string, passes uint64) (map[string]uint64, error) {
	counts := map[string]uint64{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || !slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for word := range strings.FieldsFuncSeq(string(data), separates) {
			counts[word] += passes
		}
		return nil
	})
	return counts, err
}

func separates(r rune) bool {
	return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
}
