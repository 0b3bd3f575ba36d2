package sparkckpt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/hdfsckpt/hdfsckpt/core"
)

const companionSuffix = ".crc"

// Companion is Spark's checksum of a file, in the file of that name with .crc behind it:
//
//	{"algorithm":"CRC32C","value":-1102906266,"mainFileSize":296,"timestampMs":1796055643845,
//	 "creator":{"executorId":"","taskInfo":""}}
//
// value is the CRC32C of all bytes of the file as they are stored, as a signed number. Spark 4.2 writes and checks it in
// checkpoint format 2 only; 4.1 wrote one beside every file and refuses a file that disagrees with it.
type Companion struct {
	Value int32
	Size  int64
}

// ParseCompanion parses a companion. Whatever Spark does not read is core.ErrCorrupt: Spark refuses the file then, too.
func ParseCompanion(data []byte) (Companion, error) {
	var form struct {
		Algorithm    *string `json:"algorithm"`
		Value        *int32  `json:"value"`
		MainFileSize *int64  `json:"mainFileSize"`
	}
	if err := json.Unmarshal(data, &form); err != nil {
		return Companion{}, fmt.Errorf("%w: checksum file: %w", core.ErrCorrupt, err)
	}
	switch {
	case form.Value == nil || form.MainFileSize == nil:
		return Companion{}, fmt.Errorf("%w: checksum file without value or mainFileSize", core.ErrCorrupt)
	case form.Algorithm != nil && *form.Algorithm != "CRC32C":
		return Companion{}, fmt.Errorf("%w: checksum file of algorithm %q", core.ErrUnsupportedVersion, *form.Algorithm)
	}
	return Companion{Value: *form.Value, Size: *form.MainFileSize}, nil
}

// Check compares a file of the given size with the companion; the error is core.ErrCorrupt.
func (c Companion) Check(r io.Reader, size int64) error {
	if size != c.Size {
		return fmt.Errorf("%w: %d bytes, its checksum file says %d", core.ErrCorrupt, size, c.Size)
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(sum, r); err != nil {
		return err
	}
	if got := int32(sum.Sum32()); got != c.Value {
		return fmt.Errorf("%w: CRC32C %d, its checksum file says %d", core.ErrCorrupt, got, c.Value)
	}
	return nil
}

// checkCompanion compares a file with its companion. That there is none is no error, as in Spark.
func checkCompanion(ctx context.Context, fsys core.FileSystem, name string) (present bool, err error) {
	data, err := readText(ctx, fsys, name+companionSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	companion, err := ParseCompanion(data)
	if err != nil {
		return true, core.PathError("read", name+companionSuffix, err)
	}
	r, err := fsys.Open(ctx, name)
	if err != nil {
		return true, err
	}
	defer func() { _ = r.Close() }() // nothing is lost when a read-only file fails to close
	return true, core.PathError("read", name, companion.Check(r, r.Size()))
}
