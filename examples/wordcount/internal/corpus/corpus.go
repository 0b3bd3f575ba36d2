// Package corpus is the input of the word count: the regular files of a source tree, cut into chunks that are the same in
// every process and after every restart.
package corpus

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Corpus is a list of files in a fixed order, cut into chunks of whole files. A chunk is the unit of progress: a position in
// the input is a number of chunks.
type Corpus struct {
	root   string
	files  []file
	chunks []chunk
	bytes  int64
}

type file struct {
	path string // relative to root
	size int64
}

type chunk struct{ first, end int } // indices of files

// textFiles are the endings of the files that are read.
var textFiles = map[string]bool{".go": true, ".s": true, ".txt": true, ".md": true, ".h": true, ".c": true, ".mod": true, ".html": true}

// Scan lists the text files below root, in byte order of their paths, and cuts them into chunks of about chunkBytes.
func Scan(root string, chunkBytes int64) (*Corpus, error) {
	c := &Corpus{root: root}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || !textFiles[strings.ToLower(filepath.Ext(path))] {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		c.files = append(c.files, file{path: relative, size: info.Size()})
		c.bytes += info.Size()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the input: %w", err)
	}
	if len(c.files) == 0 {
		return nil, fmt.Errorf("no text files below %s", root)
	}
	c.cut(chunkBytes)
	return c, nil
}

func (c *Corpus) cut(chunkBytes int64) {
	first, size := 0, int64(0)
	for i, f := range c.files {
		size += f.size
		if size >= chunkBytes {
			c.chunks = append(c.chunks, chunk{first: first, end: i + 1})
			first, size = i+1, 0
		}
	}
	if first < len(c.files) {
		c.chunks = append(c.chunks, chunk{first: first, end: len(c.files)})
	}
}

// Chunks is the number of chunks in one pass over the input.
func (c *Corpus) Chunks() int64 { return int64(len(c.chunks)) }

// Bytes is the size of the input.
func (c *Corpus) Bytes() int64 { return c.bytes }

// Files is the number of files.
func (c *Corpus) Files() int { return len(c.files) }

// Fingerprint tells one input from another. State that was counted from one must not go on with the other.
func (c *Corpus) Fingerprint() string {
	sum := sha256.New()
	for _, f := range c.files {
		fmt.Fprintf(sum, "%s\x00%d\n", f.path, f.size)
	}
	fmt.Fprintf(sum, "%d chunks", len(c.chunks))
	return fmt.Sprintf("%x", sum.Sum(nil)[:16])
}

// Read returns the bytes of chunk i modulo the number of chunks; the files' contents are separated by a newline. It appends
// to buffer, which it may grow.
func (c *Corpus) Read(i int64, buffer []byte) ([]byte, error) {
	piece := c.chunks[i%c.Chunks()]
	for _, f := range c.files[piece.first:piece.end] {
		data, err := os.ReadFile(filepath.Join(c.root, f.path))
		if err != nil {
			return buffer, err
		}
		if int64(len(data)) != f.size {
			return buffer, fmt.Errorf("%s changed its size from %d to %d bytes: the input must not change", f.path, f.size, len(data))
		}
		buffer = append(append(buffer, data...), '\n')
	}
	return buffer, nil
}

// Words calls yield for every word of text: a run of ASCII letters, digits and underscores. The slice is only valid during
// the call.
func Words(text []byte, yield func(word []byte)) {
	start := -1
	for i, b := range text {
		if isWord[b] {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			yield(text[start:i])
			start = -1
		}
	}
	if start >= 0 {
		yield(text[start:])
	}
}

var isWord = func() (table [256]bool) {
	for b := range table {
		c := byte(b)
		table[b] = c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	return table
}()
