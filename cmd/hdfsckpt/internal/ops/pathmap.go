package ops

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/metadata"
)

// PathMap says where trees have moved to. The first mapping that fits a path is used; a path that none fits stays.
type PathMap []Mapping

// Mapping replaces the qualified directory Old, at the beginning of a path, by New.
type Mapping struct{ Old, New string }

// NewMapping checks both sides, which must be qualified, and brings them into the form of the paths of objects.
func NewMapping(from, to string) (Mapping, error) {
	var sides [2]string
	for i, side := range [...]string{from, to} {
		uri, name, err := core.SplitQualified(side)
		if err != nil {
			return Mapping{}, err
		}
		if uri == "" {
			return Mapping{}, fmt.Errorf("%w: %q has no scheme", fs.ErrInvalid, side)
		}
		sides[i] = strings.TrimSuffix(core.Qualify(uri, name), "/")
	}
	return Mapping{Old: sides[0], New: sides[1]}, nil
}

// Map returns where the file of a recorded path is.
func (m PathMap) Map(recorded string) string {
	for _, mapping := range m {
		if rest, ok := strings.CutPrefix(recorded, mapping.Old); ok && (rest == "" || rest[0] == '/') {
			return mapping.New + rest
		}
	}
	return recorded
}

// MapRecorded is Map for a path as a handle has it, which may be written in several ways. One that no mapping fits stays as it is.
func (m PathMap) MapRecorded(recorded string) string {
	clean, err := metadata.Resolve(&core.FileHandle{Path: recorded})
	if err != nil {
		return recorded
	}
	if moved := m.Map(clean); moved != clean {
		return moved
	}
	return recorded
}
