package sparkckpt

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// The snapshot of a RocksDB store is a zip whose entries are
//
//	metadata            v1\n and JSON, below
//	CURRENT MANIFEST-… OPTIONS-… 00000n.log     RocksDB's own
//
//	{"sstFiles":[{"localFileName":"000008.sst","dfsSstFileName":"000008-<uuid>.sst","sizeBytes":1673}],
//	 "logFiles":[…],                                     left out if empty
//	 "numKeys":15,                                       -1 if not counted
//	 "columnFamilyMapping":{"default":1},"columnFamilyTypeMap":{"default":false},"maxColumnFamilyId":1}
//
// The tables are in SSTs/ under their dfsSstFileName. Only the metadata is read here.

const maxZipMetadata = 64 << 20

// RocksSnapshot is what the metadata of a RocksDB snapshot says.
type RocksSnapshot struct {
	Tables []RocksTable
	Logs   []RocksTable
	// Keys is -1 if they were not counted.
	Keys int64
	// Families maps the names of column families to their ids; it is empty where there are none.
	Families map[string]int
	// LogBytes are those of the write-ahead logs inside of the zip.
	LogBytes int64
}

// RocksTable is a file that a snapshot shares with others.
type RocksTable struct {
	LocalName string `json:"localFileName"`
	Name      string `json:"dfsSstFileName"`
	Size      int64  `json:"sizeBytes"`
}

// Empty reports whether the snapshot is that of an empty store: no table and no log has anything.
func (s RocksSnapshot) Empty() bool {
	return len(s.Tables) == 0 && len(s.Logs) == 0 && s.LogBytes == 0
}

// ParseRocksMetadata parses the entry metadata of a snapshot. Damage is core.ErrCorrupt, another version
// core.ErrUnsupportedVersion.
func ParseRocksMetadata(data []byte) (RocksSnapshot, error) {
	version, body, found := bytes.Cut(data, []byte("\n"))
	switch {
	case !found:
		return RocksSnapshot{}, fmt.Errorf("%w: snapshot metadata without a first line", core.ErrCorrupt)
	case string(version) != "v1":
		return RocksSnapshot{}, fmt.Errorf("%w: snapshot metadata %q", core.ErrUnsupportedVersion, version)
	}
	var form struct {
		SstFiles            []RocksTable   `json:"sstFiles"`
		LogFiles            []RocksTable   `json:"logFiles"`
		NumKeys             *int64         `json:"numKeys"`
		ColumnFamilyMapping map[string]int `json:"columnFamilyMapping"`
	}
	if err := json.Unmarshal(body, &form); err != nil {
		return RocksSnapshot{}, fmt.Errorf("%w: snapshot metadata: %w", core.ErrCorrupt, err)
	}
	if form.SstFiles == nil || form.NumKeys == nil {
		return RocksSnapshot{}, fmt.Errorf("%w: snapshot metadata without sstFiles or numKeys", core.ErrCorrupt)
	}
	return RocksSnapshot{Tables: form.SstFiles, Logs: form.LogFiles, Keys: *form.NumKeys, Families: form.ColumnFamilyMapping}, nil
}

// ReadRocksSnapshot reads the metadata of a snapshot. The errors are *fs.PathError.
func ReadRocksSnapshot(ctx context.Context, fsys core.FileSystem, name string) (RocksSnapshot, error) {
	r, err := fsys.Open(ctx, name)
	if err != nil {
		return RocksSnapshot{}, err
	}
	defer func() { _ = r.Close() }() // nothing is lost when a read-only file fails to close
	s, err := readZip(r, r.Size())
	return s, core.PathError("read", name, err)
}

func readZip(r io.ReaderAt, size int64) (RocksSnapshot, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return RocksSnapshot{}, fmt.Errorf("%w: %w", core.ErrCorrupt, err)
	}
	var snapshot RocksSnapshot
	found, logBytes := false, int64(0)
	for _, entry := range archive.File {
		switch {
		case entry.Name == metadataFile:
			data, err := readZipEntry(entry)
			if err != nil {
				return RocksSnapshot{}, err
			}
			if snapshot, err = ParseRocksMetadata(data); err != nil {
				return RocksSnapshot{}, err
			}
			found = true
		case strings.HasSuffix(entry.Name, ".log"):
			logBytes += int64(min(entry.UncompressedSize64, 1<<40))
		}
	}
	if !found {
		return RocksSnapshot{}, fmt.Errorf("%w: a zip without metadata", core.ErrCorrupt)
	}
	snapshot.LogBytes = logBytes
	return snapshot, nil
}

func readZipEntry(entry *zip.File) ([]byte, error) {
	f, err := entry.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: entry %s: %w", core.ErrCorrupt, entry.Name, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxZipMetadata+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: entry %s: %w", core.ErrCorrupt, entry.Name, err)
	case len(data) > maxZipMetadata:
		return nil, fmt.Errorf("%w: entry %s has more than %d bytes", core.ErrCorrupt, entry.Name, maxZipMetadata)
	}
	return data, nil
}
