// Package counts is the state of the word count: a number per word, divided into key groups so that it can be spread over
// another number of workers after a restore.
package counts

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// MaxParallelism is the number of key groups, and so the largest number of workers.
const MaxParallelism = 128

// maxWord bounds the length in bytes of a word that is read back.
const maxWord = 1 << 24

// Counts holds the counts of the words of one range of key groups. It is for one goroutine.
type Counts struct {
	groups metadata.KeyGroupRange
	words  map[string]*entry
}

type entry struct {
	count uint64
	group int // -1 for a word of another worker, remembered so that it need not be hashed again
}

// New returns empty counts for a range of key groups.
func New(groups metadata.KeyGroupRange) *Counts {
	return &Counts{groups: groups, words: map[string]*entry{}}
}

// Add counts a word if it belongs to the key groups. It does not keep word.
func (c *Counts) Add(word []byte) {
	e := c.words[string(word)]
	if e == nil {
		group := metadata.KeyGroupOfBytes(word, MaxParallelism)
		if !c.groups.Contains(group) {
			group = -1
		}
		e = &entry{group: group}
		c.words[string(word)] = e
	}
	if e.group >= 0 {
		e.count++
	}
}

// All calls yield for every word of the key groups.
func (c *Counts) All(yield func(word string, count uint64)) {
	for word, e := range c.words {
		if e.group >= 0 {
			yield(word, e.count)
		}
	}
}

// Save writes the counts group by group and returns the offset at which each group of the range begins.
//
//	per group:  uvarint number of words
//	per word:   uvarint length, bytes, uvarint count
func (c *Counts) Save(w io.Writer) (offsets []int64, err error) {
	byGroup := make([][]string, c.groups.Count)
	for word, e := range c.words {
		if e.group >= 0 {
			i := e.group - int(c.groups.Start)
			byGroup[i] = append(byGroup[i], word)
		}
	}
	out := bufio.NewWriterSize(w, 64<<10)
	position := int64(0)
	var record []byte
	for _, words := range byGroup {
		offsets = append(offsets, position)
		slices.Sort(words)
		record = binary.AppendUvarint(record[:0], uint64(len(words)))
		for _, word := range words {
			record = binary.AppendUvarint(record, uint64(len(word)))
			record = append(record, word...)
			record = binary.AppendUvarint(record, c.words[word].count)
		}
		position += int64(len(record))
		if _, err := out.Write(record); err != nil {
			return nil, err
		}
	}
	return offsets, out.Flush()
}

// ReadGroup adds the counts of one key group from r, which begins where the group does.
func (c *Counts) ReadGroup(r io.Reader, group int) error {
	in := bufio.NewReaderSize(r, 64<<10)
	words, err := binary.ReadUvarint(in)
	if err != nil {
		return fmt.Errorf("key group %d: %w", group, err)
	}
	for range words {
		length, err := binary.ReadUvarint(in)
		if err != nil || length > maxWord {
			return fmt.Errorf("key group %d: a word of %d bytes: %w", group, length, err)
		}
		word := make([]byte, length)
		if _, err := io.ReadFull(in, word); err != nil {
			return fmt.Errorf("key group %d: %w", group, err)
		}
		count, err := binary.ReadUvarint(in)
		if err != nil {
			return fmt.Errorf("key group %d: %w", group, err)
		}
		c.words[string(word)] = &entry{count: count, group: group}
	}
	return nil
}
