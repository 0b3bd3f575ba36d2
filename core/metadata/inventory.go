package metadata

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// Inventory is what a checkpoint needs beside its metadata. It holds some 40 bytes for each file and segment and no path; the
// paths are read again where they are asked for.
type Inventory struct {
	// Checkpoint has everything but the operators.
	Checkpoint *Checkpoint
	// Operators in the order of the file.
	Operators []OperatorFiles
	// Files sums up all operators.
	Files FileTotals

	src   io.ReaderAt
	size  int64
	dir   string
	where func(string) string
	table fileTable
}

// OperatorFiles sums up the files of an operator. One that several operators need counts for the first of them.
type OperatorFiles struct {
	ID   OperatorID
	Name string
	UID  string
	FileTotals
}

// FileTotals count files, each once.
type FileTotals struct {
	// Files does not count directories: what is needed of them is named file by file.
	Files int
	// Bytes are the recorded sizes. A file of which only segments are recorded counts up to the end of the last that is needed.
	// A sum beyond 63 bits is the largest number.
	Bytes int64
	// UnknownSizes counts the files whose length is not recorded.
	UnknownSizes int
	// Shared counts the files, and SharedBytes their bytes, that Flink enters into its registry of shared state: other
	// checkpoints may need them too.
	Shared      int
	SharedBytes int64
	// Checksummed counts the files of which all bytes that are needed have a checksum.
	Checksummed int
	Segments    int
	Directories int
}

// NeededFile is a file that a checkpoint needs, or a segment of one.
type NeededFile struct {
	// Object holds what all handles together say of the file. Of a file of merged states it has one segment at a time.
	core.Object
	// First: the path did not come before. It is false for the second segment of a file and those behind it.
	First bool
	Kind  FileKind
	// Shared: Flink enters the file into its registry of shared state, and other checkpoints may need it too.
	Shared bool
	// Checksummed: all bytes of the file that are needed have a checksum.
	Checksummed bool
	// Operator is the number of the operator that names the file first, Subtask the index of the subtask that it is yielded for.
	Operator int
	Subtask  int
}

// InventoryOptions of [TakeInventory]; the zero value has none.
type InventoryOptions struct {
	// Visit is called as by [Scan].
	Visit Visitor
	// Where returns the path under which a file is known, for trees that have moved: it is called with the path of each handle that
	// is not relative.
	Where func(path string) string
}

// TakeInventory reads a `_metadata` file of size bytes that lies in the qualified directory dir, and finds the files that the
// checkpoint needs: the same as [Objects], without ever holding the file, its content, or all paths in memory.
//
// The error is that of Scan, or that of Objects with an offset of -1.
func TakeInventory(src io.ReaderAt, size int64, dir string, opts InventoryOptions) (*Inventory, error) {
	inv := &Inventory{src: src, size: size, dir: dir, where: opts.Where}
	visit := opts.Visit
	number, subtask := -1, 0
	walk := fileWalk{found: func(f *foundFile) *Error { return inv.enter(f, number) }}
	c, err := Scan(src, size, dir, Visitor{
		Operator: func(n int, o *OperatorState) error {
			number, subtask = n, 0
			inv.Operators = append(inv.Operators, OperatorFiles{ID: o.ID, Name: o.Name, UID: o.UID})
			if visit.Operator == nil {
				return nil
			}
			return visit.Operator(n, o)
		},
		Subtask: func(s *Subtask) error {
			if s.State != nil {
				if err := walk.state(s.State); err != nil {
					err.inIndex("subtasks", subtask)
					err.inIndex("operators", number)
					return err
				}
			}
			subtask++
			if visit.Subtask == nil {
				return nil
			}
			return visit.Subtask(s)
		},
	})
	if err != nil {
		return nil, err
	}
	inv.Checkpoint = c
	inv.sumUp()
	return inv, nil
}

// enter joins what a handle says of a file with what is known of it.
func (inv *Inventory) enter(f *foundFile, operator int) *Error {
	inv.place(f)
	facts := inv.table.at(inv.table.ofPath(f.Path))
	known := facts.flags != 0
	if !known {
		*facts = fileFacts{size: f.Size, owner: uint32(operator), flags: flagPresent, kind: f.kind}
		if f.Size == unknownSize {
			facts.size = f.AtLeast
		} else {
			facts.flags |= flagSize
		}
		if f.Directory {
			facts.flags |= flagDirectory
		}
	} else if err := facts.join(f); err != nil {
		return err
	}
	facts.note(f)
	for i := range f.Segments {
		s := &f.Segments[i]
		part := inv.table.at(inv.table.ofSegment(f.Path, s.Offset, s.Size))
		part.flags |= flagPresent | flagSegment
		part.size = s.Size
		if s.Checksums != nil {
			part.flags |= flagSums
		}
	}
	return nil
}

// place gives a file the path under which it is known.
func (inv *Inventory) place(f *foundFile) {
	if inv.where != nil && !f.Relative {
		f.Path = inv.where(f.Path)
	}
}

// Lookup reports whether the checkpoint needs the file or directory with the given path, and its recorded size; for one of merged states that is
// the end of the last segment that is needed.
func (inv *Inventory) Lookup(path string) (size int64, needed bool) {
	facts := inv.table.known(inv.table.ofPath(path))
	if facts == nil {
		return 0, false
	}
	return facts.size, true
}

// join checks that a handle does not contradict those before.
func (facts *fileFacts) join(f *foundFile) *Error {
	sized := facts.flags&flagSize != 0
	switch {
	case facts.flags&flagDirectory != 0 != f.Directory:
		return contradiction("%s is a file and a directory", f.Path)
	case sized && f.Size != unknownSize && f.Size != facts.size:
		return contradiction("%s has %d and also %d bytes", f.Path, facts.size, f.Size)
	case sized && f.AtLeast > facts.size:
		return contradiction("%s has %d bytes, and a segment of it ends at %d", f.Path, facts.size, f.AtLeast)
	case !sized && f.Size != unknownSize && facts.size > f.Size:
		return contradiction("%s has %d bytes, and a segment of it ends at %d", f.Path, f.Size, facts.size)
	case !sized && f.Size != unknownSize:
		facts.size = f.Size
		facts.flags |= flagSize
	case !sized:
		facts.size = max(facts.size, f.AtLeast)
	}
	return nil
}

func contradiction(format string, args ...any) *Error {
	return &Error{Offset: -1, Reason: fmt.Sprintf(format, args...), Err: core.ErrCorrupt}
}

// note adds what handles cannot contradict each other in.
func (facts *fileFacts) note(f *foundFile) {
	for _, n := range [...]struct {
		flag fileFlags
		set  bool
	}{
		{flagByte, f.FlagByte},
		{flagWhole, f.Segments == nil},
		{flagRelative, f.Relative},
		{flagSums, f.Checksums != nil},
		{flagBare, len(f.Segments) > 0 && f.Segments[0].Checksums == nil},
		{flagShared, f.shared},
	} {
		if n.set {
			facts.flags |= n.flag
		}
	}
}

// checksummed reports whether all that is needed of a file has checksums.
func (facts *fileFacts) checksummed() bool {
	if facts.flags&flagWhole != 0 {
		return facts.flags&flagSums != 0
	}
	return facts.flags&flagBare == 0
}

func (inv *Inventory) sumUp() {
	inv.table.each(func(facts *fileFacts) {
		if facts.flags&flagSegment != 0 {
			inv.Files.Segments++
			return
		}
		inv.Operators[facts.owner].add(facts)
	})
	for i := range inv.Operators {
		inv.Files.join(&inv.Operators[i].FileTotals)
	}
}

func (t *FileTotals) add(facts *fileFacts) {
	if facts.flags&flagDirectory != 0 {
		t.Directories++
		return
	}
	t.Files++
	t.Bytes = addSizes(t.Bytes, facts.size)
	if facts.flags&flagSize == 0 {
		t.UnknownSizes++
	}
	if facts.flags&flagShared != 0 {
		t.Shared++
		t.SharedBytes = addSizes(t.SharedBytes, facts.size)
	}
	if facts.checksummed() {
		t.Checksummed++
	}
}

func (t *FileTotals) join(o *FileTotals) {
	t.Files += o.Files
	t.Bytes = addSizes(t.Bytes, o.Bytes)
	t.UnknownSizes += o.UnknownSizes
	t.Shared += o.Shared
	t.SharedBytes = addSizes(t.SharedBytes, o.SharedBytes)
	t.Checksummed += o.Checksummed
	t.Segments += o.Segments
	t.Directories += o.Directories
}

// errEnough ends a scan whose reader wants no more.
var errEnough = errors.New("enough")

// All yields every file and directory that the checkpoint needs, in the order of the metadata: each once, but a file of merged
// states as often as there are segments of it that are needed. The metadata is read again; an error ends the iteration. Only
// one iteration may go on at a time.
func (inv *Inventory) All() iter.Seq2[NeededFile, error] {
	return func(yield func(NeededFile, error) bool) {
		inv.table.each(func(facts *fileFacts) { facts.flags &^= flagMarked })
		var file NeededFile
		walk := fileWalk{found: func(f *foundFile) *Error {
			if inv.next(f, &file) && !yield(file, nil) {
				return &Error{Offset: -1, Err: errEnough}
			}
			return nil
		}}
		_, err := Scan(inv.src, inv.size, inv.dir, Visitor{Subtask: func(s *Subtask) error {
			file.Subtask = s.Index
			if s.State != nil {
				if err := walk.state(s.State); err != nil {
					return err
				}
			}
			return nil
		}})
		if err != nil && !errors.Is(err, errEnough) {
			yield(NeededFile{}, err)
		}
	}
}

// next fills file, and reports whether it is to be yielded at this place.
func (inv *Inventory) next(f *foundFile, file *NeededFile) bool {
	inv.place(f)
	facts := inv.table.known(inv.table.ofPath(f.Path))
	if facts == nil {
		return false // the file has changed: its end will tell
	}
	first := facts.flags&flagMarked == 0
	whole := facts.flags&flagWhole != 0
	wanted := facts.flags & flagSums
	marked := facts
	switch {
	case whole && (!first || len(f.Segments) > 0):
		return false
	case !whole:
		s := &f.Segments[0]
		marked = inv.table.known(inv.table.ofSegment(f.Path, s.Offset, s.Size))
		if marked == nil || marked.flags&flagMarked != 0 {
			return false
		}
		wanted = marked.flags & flagSums
		if wanted != 0 && s.Checksums == nil {
			return false // another handle has them
		}
	case wanted != 0 && f.Checksums == nil:
		return false
	}
	marked.flags |= flagMarked
	facts.flags |= flagMarked
	file.fill(f, facts)
	file.First = first
	return true
}

func (file *NeededFile) fill(f *foundFile, facts *fileFacts) {
	file.Object = f.Object
	file.Size, file.AtLeast = unknownSize, facts.size
	if facts.flags&flagSize != 0 {
		file.Size, file.AtLeast = facts.size, 0
	}
	file.Relative = facts.flags&flagRelative != 0
	file.FlagByte = facts.flags&flagByte != 0
	file.Kind, file.Operator = facts.kind, int(facts.owner)
	file.Shared = facts.flags&flagShared != 0
	file.Checksummed = facts.checksummed()
	if facts.flags&flagWhole != 0 {
		file.Segments = nil
	}
}
