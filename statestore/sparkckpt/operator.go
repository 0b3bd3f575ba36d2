package sparkckpt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
)

const (
	metadataDir = "_metadata"
	schemaDir   = "_stateSchema"
)

// maxPartitions is more than any query has; a number in a file is not believed above it.
const maxPartitions = 1 << 20

// Operator is a stateful operator of a query.
type Operator struct {
	ID  int64
	Dir string
	// Name is "" where there is no metadata, as before Spark 3.5.
	Name string
	// Properties is Spark's JSON about the operator, "" if there is none.
	Properties string
	// Stores are those that the metadata names; nil without.
	Stores []StoreInfo
}

// StoreInfo is what an operator's metadata says of a store.
type StoreInfo struct {
	Name          string
	PrefixColumns int
	Partitions    int64
	// SchemaFiles are the recorded URIs of schemas of version 3. They are absolute: of a checkpoint that was moved only their
	// last elements are right.
	SchemaFiles []string
}

// operatorForm is the JSON of an operator's metadata, behind a first line "v1" or "v2".
type operatorForm struct {
	OperatorInfo struct {
		OperatorID   int64  `json:"operatorId"`
		OperatorName string `json:"operatorName"`
	} `json:"operatorInfo"`
	StateStoreInfo []struct {
		StoreName            string   `json:"storeName"`
		NumColsPrefixKey     int      `json:"numColsPrefixKey"`
		NumPartitions        int64    `json:"numPartitions"`
		StateSchemaFilePath  string   `json:"stateSchemaFilePath"`
		StateSchemaFilePaths []string `json:"stateSchemaFilePaths"`
	} `json:"stateStoreInfo"`
	OperatorPropertiesJSON string `json:"operatorPropertiesJson"`
}

// ParseOperator parses an operator's metadata. Damage is core.ErrCorrupt, another version core.ErrUnsupportedVersion.
func ParseOperator(data []byte) (Operator, error) {
	version, body, err := cutVersion(data)
	if err != nil {
		return Operator{}, err
	}
	if version > 2 {
		return Operator{}, fmt.Errorf("%w: operator metadata v%d", core.ErrUnsupportedVersion, version)
	}
	var form operatorForm
	if err := json.Unmarshal(bytes.TrimSpace(body), &form); err != nil {
		return Operator{}, fmt.Errorf("%w: operator metadata: %w", core.ErrCorrupt, err)
	}
	o := Operator{ID: form.OperatorInfo.OperatorID, Name: form.OperatorInfo.OperatorName, Properties: form.OperatorPropertiesJSON}
	for _, s := range form.StateStoreInfo {
		if s.NumPartitions < 0 || s.NumPartitions > maxPartitions {
			return Operator{}, fmt.Errorf("%w: operator metadata: store %q has %d partitions", core.ErrCorrupt, s.StoreName, s.NumPartitions)
		}
		files := s.StateSchemaFilePaths
		if s.StateSchemaFilePath != "" {
			files = append(files, s.StateSchemaFilePath)
		}
		o.Stores = append(o.Stores, StoreInfo{Name: s.StoreName, PrefixColumns: s.NumColsPrefixKey, Partitions: s.NumPartitions, SchemaFiles: files})
	}
	return o, nil
}

// Operators lists the operators, by id. The problems are metadata that is there and damaged: such an operator has no name.
func (c *Checkpoint) Operators(ctx context.Context) (operators []Operator, problems []error, err error) {
	for info, err := range c.fsys.List(ctx, c.StateRoot()) {
		if err != nil {
			return nil, nil, err
		}
		id, ok := parseNumber(info.Name)
		if !ok || !info.IsDir() {
			continue
		}
		o, err := c.operator(ctx, id)
		if err != nil {
			if !errors.Is(err, core.ErrCorrupt) && !errors.Is(err, core.ErrUnsupportedVersion) {
				return nil, nil, err
			}
			problems = append(problems, err)
		}
		operators = append(operators, o)
	}
	slices.SortFunc(operators, func(a, b Operator) int { return cmp.Compare(a.ID, b.ID) })
	return operators, problems, nil
}

// operator reads the metadata of an operator: the newest of version 2, or that of version 1, or none.
func (c *Checkpoint) operator(ctx context.Context, id int64) (Operator, error) {
	dir := path.Join(c.StateRoot(), strconv.FormatInt(id, 10))
	bare := Operator{ID: id, Dir: dir}
	log, err := listLog(ctx, c.fsys, path.Join(dir, metadataDir, "v2"))
	if err == nil {
		err = errors.Join(log.problems...)
	}
	if err != nil {
		return bare, err
	}
	name := path.Join(dir, metadataDir, metadataFile)
	if last := log.last(); last >= 0 {
		name = log.name(last)
	}
	data, err := readText(ctx, c.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return bare, nil
	}
	if err != nil {
		return bare, err
	}
	o, err := ParseOperator(data)
	if err == nil && o.ID != id {
		err = fmt.Errorf("%w: it is the metadata of operator %d", core.ErrCorrupt, o.ID)
	}
	if err != nil {
		return bare, core.PathError("read", name, err)
	}
	o.Dir = dir
	return o, nil
}

// StoreIDs lists the stores of an operator whose directories are there, by partition and name, and those that its metadata
// promises and that are missing. The metadata counts the partitions of the query, also for an operator that works in one, such as a
// global limit: where there is partition 0 alone, no other is missed.
func (c *Checkpoint) StoreIDs(ctx context.Context, o Operator) (found, missing []statestore.StoreID, err error) {
	for info, err := range c.fsys.List(ctx, o.Dir) {
		if err != nil {
			return nil, nil, err
		}
		partition, ok := parseNumber(info.Name)
		if !ok || !info.IsDir() {
			continue
		}
		names, err := c.storeNames(ctx, o, path.Join(o.Dir, info.Name))
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			found = append(found, statestore.StoreID{Operator: o.ID, Partition: partition, Name: name})
		}
	}
	there := make(map[statestore.StoreID]bool, len(found))
	for _, id := range found {
		there[id] = true
	}
	single := len(found) > 0 && !slices.ContainsFunc(found, func(id statestore.StoreID) bool { return id.Partition > 0 })
	for _, s := range o.Stores {
		partitions := s.Partitions
		if single {
			partitions = min(partitions, 1)
		}
		for partition := range partitions {
			id := statestore.StoreID{Operator: o.ID, Partition: partition, Name: s.Name}
			if !there[id] {
				missing = append(missing, id)
			}
		}
	}
	slices.SortFunc(found, func(a, b statestore.StoreID) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), strings.Compare(a.Name, b.Name))
	})
	return found, missing, nil
}

// storeNames finds out which stores are in the directory of a partition. The default store has its files there; it is
// also reported where there is nothing else.
func (c *Checkpoint) storeNames(ctx context.Context, o Operator, dir string) ([]string, error) {
	var names []string
	ofDefault := false
	for info, err := range c.fsys.List(ctx, dir) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // removed since it was listed
		}
		if err != nil {
			return nil, err
		}
		if info.IsDir() && isStoreName(info.Name) {
			names = append(names, info.Name)
		}
		_, _, isVersion := statestore.ParseFileName(info.Name)
		_, _, _, isRocks := statestore.ParseRocksName(info.Name)
		ofDefault = ofDefault || info.IsRegular() && (isVersion || isRocks)
	}
	promised := slices.ContainsFunc(o.Stores, func(s StoreInfo) bool { return s.Name == statestore.DefaultStore })
	if ofDefault || promised || len(names) == 0 && o.Stores == nil {
		names = append(names, statestore.DefaultStore)
	}
	return names, nil
}

// isStoreName tells the directories of named stores from those of Spark and of this module.
func isStoreName(name string) bool {
	return name != sstDir && name != logDir && name != "lost+found" && !strings.HasPrefix(name, "_") && !strings.Contains(name, ".")
}
