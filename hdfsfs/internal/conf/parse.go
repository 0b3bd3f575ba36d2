package conf

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A file, as Hadoop reads it; names count, namespaces and prefixes do not:
//
//	<configuration>
//	  <property> <name>key</name> <value>text</value> <final>true</final> </property>
//	  <property name="key" value="text" final="true"/>
//	  <xi:include href="other.xml"> <xi:fallback> …  </xi:fallback> </xi:include>
//	</configuration>
//
// A file that is included may hold a configuration or bare properties; the fallback counts where it is missing.

// Limits of what is read.
const (
	maxFile     = 8 << 20
	maxTotal    = 32 << 20
	maxFiles    = 64
	maxIncludes = 16 // one within the other
	maxDepth    = 32 // of elements
)

// property is one as it stands in a file.
type property struct {
	name, value string
	hasValue    bool
	final       bool
}

// reader collects the properties of files in their order.
type reader struct {
	open  func(name string) (io.ReadCloser, error)
	dir   string // of the configuration
	found []property
	files int
	bytes int64
}

// readFile adds the properties of a file. A missing file is fs.ErrNotExist.
func (r *reader) readFile(name string, includes int) error {
	if r.files++; r.files > maxFiles {
		return invalid("%s: more than %d files", name, maxFiles)
	}
	if includes > maxIncludes {
		return invalid("%s: files include each other more than %d deep", name, maxIncludes)
	}
	f, err := r.open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // was only read
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	if r.bytes += int64(len(content)); len(content) > maxFile || r.bytes > maxTotal {
		return invalid("%s: the configuration is longer than %d bytes in a file, or %d in all", name, maxFile, maxTotal)
	}
	p := &parser{r: r, name: name, includes: includes, decoder: xml.NewDecoder(strings.NewReader(string(content)))}
	// Hadoop's files are ASCII or UTF-8, whatever they claim.
	p.decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	if err := p.elements(0); err != nil {
		if isLocated(err) {
			return err
		}
		line, _ := p.decoder.InputPos()
		return &fileError{name, line, err}
	}
	return nil
}

// fileError names the place of an error in a file.
type fileError struct {
	name string
	line int
	err  error
}

func (e *fileError) Error() string { return fmt.Sprintf("%s:%d: %v", e.name, e.line, e.err) }
func (e *fileError) Unwrap() error { return e.err }

func isLocated(err error) bool {
	var located *fileError
	return errors.As(err, &located)
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", fs.ErrInvalid, fmt.Sprintf(format, args...))
}

// parser reads one file.
type parser struct {
	r        *reader
	name     string
	includes int
	decoder  *xml.Decoder
}

// token returns the next one. At the end of the file it is nil, nil.
func (p *parser) token() (xml.Token, error) {
	t, err := p.decoder.Token()
	if errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // the end
	}
	if err != nil {
		return nil, invalid("%v", err)
	}
	return t, nil
}

// elements reads the content of a configuration, of a fallback, or of a whole file.
func (p *parser) elements(depth int) error {
	if depth > maxDepth {
		return invalid("elements stand more than %d deep", maxDepth)
	}
	for {
		t, err := p.token()
		if err != nil || t == nil {
			return err
		}
		switch t := t.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			switch t.Name.Local {
			case "configuration":
				err = p.elements(depth + 1)
			case "property":
				err = p.property(t)
			case "include":
				err = p.include(t, depth)
			default:
				err = p.skip()
			}
			if err != nil {
				return err
			}
		}
	}
}

func (p *parser) skip() error {
	if err := p.decoder.Skip(); err != nil {
		return invalid("%v", err)
	}
	return nil
}

func (p *parser) property(start xml.StartElement) error {
	var found property
	for _, a := range start.Attr {
		found.set(a.Name.Local, a.Value)
	}
	for {
		t, err := p.token()
		if err != nil || t == nil {
			return err
		}
		switch t := t.(type) {
		case xml.EndElement:
			if found.name != "" && found.hasValue {
				p.r.found = append(p.r.found, found)
			}
			return nil
		case xml.StartElement:
			text, err := p.text()
			if err != nil {
				return err
			}
			if text != "" { // an empty element sets nothing, an empty attribute does
				found.set(t.Name.Local, text)
			}
		}
	}
}

func (p *property) set(part, text string) {
	switch part {
	case "name":
		p.name = strings.TrimSpace(text)
	case "value":
		p.value, p.hasValue = text, true
	case "final":
		p.final = strings.TrimSpace(text) == "true"
	}
}

// text reads to the end of an element and returns its text, without that of elements in it.
func (p *parser) text() (string, error) {
	var b strings.Builder
	for {
		t, err := p.token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case nil:
			return "", invalid("the file ends within a property")
		case xml.CharData:
			b.Write(t)
		case xml.StartElement:
			if err := p.skip(); err != nil {
				return "", err
			}
		case xml.EndElement:
			return b.String(), nil
		}
	}
}

// include reads another file, or the fallback if there is none.
func (p *parser) include(start xml.StartElement, depth int) error {
	var href string
	for _, a := range start.Attr {
		if a.Name.Local == "href" {
			href = strings.TrimSpace(a.Value)
		}
	}
	candidates, err := p.included(href)
	if err != nil {
		return err
	}
	for _, name := range candidates {
		if err = p.r.readFile(name, p.includes+1); err == nil || !isMissing(err) {
			break
		}
	}
	if err != nil && !isMissing(err) {
		return err
	}
	return p.fallback(depth, err)
}

// fallback reads to the end of an include. Where the file was missing, the content of a fallback counts.
func (p *parser) fallback(depth int, missing error) error {
	for {
		t, err := p.token()
		if err != nil || t == nil {
			return err
		}
		switch t := t.(type) {
		case xml.EndElement:
			return missing
		case xml.StartElement:
			if t.Name.Local != "fallback" || missing == nil {
				err = p.skip()
			} else {
				missing = nil
				err = p.elements(depth + 1)
			}
			if err != nil {
				return err
			}
		}
	}
}

// isMissing tells a file that is not there from one that includes such a file.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) && !isLocated(err) }

// included are the files that an href may mean, of which the first one counts that is there: a file URL, an absolute path, or a
// path relative to the folder of the configuration, as Hadoop takes it, or else to the folder of the including file.
func (p *parser) included(href string) ([]string, error) {
	switch {
	case href == "":
		return nil, invalid("an include without href")
	case strings.HasPrefix(href, "file:"):
		u, err := url.Parse(href)
		if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
			return nil, invalid("the include of %q", href)
		}
		return []string{u.Path}, nil
	case strings.Contains(href, "://"):
		return nil, fmt.Errorf("%w: the include of %q: only files are read", errors.ErrUnsupported, href)
	case filepath.IsAbs(href):
		return []string{href}, nil
	}
	name := filepath.FromSlash(href)
	return slices.Compact([]string{filepath.Join(p.r.dir, name), filepath.Join(filepath.Dir(p.name), name)}), nil
}

func openFile(name string) (io.ReadCloser, error) { return os.Open(name) }
