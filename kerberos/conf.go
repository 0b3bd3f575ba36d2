package kerberos

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of a configuration with all that it includes.
const (
	maxConfigBytes = 1 << 20
	maxConfigFiles = 256
	maxConfigDepth = 10
	maxConfigLine  = 4096
)

// loader collects the lines of a configuration by section, files being read where they are included.
type loader struct {
	sections map[string][]string
	open     []string // the files that include one another, outermost first
	files    int
	bytes    int64
}

// loadConfig reads files, with colons between their names. As with MIT Kerberos those that are not there are passed over, if
// there is at least one.
func loadConfig(paths string) (*configuration, error) {
	l := loader{sections: map[string][]string{}}
	var missing error
	for path := range strings.SplitSeq(paths, ":") {
		if path == "" {
			continue
		}
		err := l.file(path)
		if errors.Is(err, fs.ErrNotExist) && len(l.open) == 0 && l.isTop(err, path) {
			missing = err
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("kerberos: configuration: %w", err)
		}
	}
	if l.files == 0 {
		if missing == nil {
			missing = fs.ErrNotExist
		}
		return nil, fmt.Errorf("kerberos: configuration %q: %w: set the option Config, or KRB5_CONFIG (%w)", paths, missing, fs.ErrInvalid)
	}
	return newConfiguration(paths, l.sections)
}

// isTop tells a file that is not there from one that includes a file that is not there.
func (*loader) isTop(err error, path string) bool {
	var pathErr *fs.PathError
	return errors.As(err, &pathErr) && pathErr.Path == path
}

// parseConfig reads a configuration from a string.
func parseConfig(name, text string) (*configuration, error) {
	l := loader{sections: map[string][]string{}}
	if err := l.text(name, text); err != nil {
		return nil, fmt.Errorf("kerberos: configuration: %w", err)
	}
	return newConfiguration(name, l.sections)
}

func (l *loader) file(path string) error {
	for _, above := range l.open {
		if above == path || sameFile(above, path) {
			return fmt.Errorf("%s includes itself, by way of %s: %w", path, strings.Join(append(l.open, path), ", "), fs.ErrInvalid)
		}
	}
	if len(l.open) >= maxConfigDepth {
		return fmt.Errorf("%s is included more than %d files deep: %w", path, maxConfigDepth, fs.ErrInvalid)
	}
	if l.files >= maxConfigFiles {
		return fmt.Errorf("%s: there are more than %d files: %w", path, maxConfigFiles, fs.ErrInvalid)
	}
	text, err := readBounded(path, maxConfigBytes-l.bytes)
	if err != nil {
		return err
	}
	l.files++
	l.bytes += int64(len(text))
	l.open = append(l.open, path)
	err = l.text(path, string(text))
	l.open = l.open[:len(l.open)-1]
	return err
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// readBounded refuses what is no regular file, such as a pipe, on which it would wait for ever.
func readBounded(path string, limit int64) (_ []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("not a regular file: %w", fs.ErrInvalid)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than expected (%d bytes): %w", limit, fs.ErrInvalid)}
	}
	return b, err
}

// text takes the lines of one file. As with MIT Kerberos each file has to begin its own sections.
func (l *loader) text(name, text string) error {
	section := ""
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		verb, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		rest = strings.TrimSpace(rest)
		var err error
		switch {
		case len(line) > maxConfigLine:
			return fmt.Errorf("%s:%d: the line is longer than %d bytes: %w", name, number, maxConfigLine, fs.ErrInvalid)
		case line == "" || line[0] == '#' || line[0] == ';' || verb == "module":
		case verb == "include" || verb == "includedir":
			if err = l.include(verb, rest); err != nil {
				return fmt.Errorf("%s:%d: %w", name, number, err)
			}
		case line[0] == '[':
			end := strings.IndexByte(line, ']')
			if end < 0 {
				return fmt.Errorf("%s:%d: %q does not end with ]: %w", name, number, line, fs.ErrInvalid)
			}
			section = strings.ToLower(strings.TrimSpace(line[1:end]))
		case section == "":
			return fmt.Errorf("%s:%d: %q stands before the first [section]: %w", name, number, line, fs.ErrInvalid)
		default:
			l.sections[section] = append(l.sections[section], line)
		}
	}
	return nil
}

func (l *loader) include(verb, path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s %q: the path has to be absolute: %w", verb, path, fs.ErrInvalid)
	}
	if verb == "include" {
		return l.file(path)
	}
	entries, err := os.ReadDir(path) // in the order of names
	if err != nil {
		return err
	}
	for _, e := range entries {
		full := filepath.Join(path, e.Name())
		info, err := os.Stat(full)
		if err != nil || !info.Mode().IsRegular() || !includable(e.Name()) {
			continue
		}
		if err := l.file(full); err != nil {
			return err
		}
	}
	return nil
}

// includable reports whether MIT Kerberos takes a file of that name from an includedir: it passes over editors' backups.
func includable(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	if strings.HasSuffix(name, ".conf") {
		return true
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return true
}
