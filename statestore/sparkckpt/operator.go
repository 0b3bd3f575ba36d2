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

// Operators lists the operators, by id. The problems are metadata that is damaged or cannot be read, whose operator has no name,
// and operators that are missing: Spark numbers them from 0, and a query that has committed a batch has one.
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
		if ctx.Err() != nil {
			return nil, nil, err
		}
		if err != nil {
			problems = append(problems, err)
		}
		operators = append(operators, o)
	}
	slices.SortFunc(operators, func(a, b Operator) int { return cmp.Compare(a.ID, b.ID) })
	committed, known := c.CommittedVersion()
	if !known {
		return operators, problems, nil
	}
	expected := int64(0)
	for _, o := range operators {
		if o.ID > expected {
			problems = append(problems, missingEntry(c.operatorDir(expected), "there is operator %d, and Spark numbers them from 0", o.ID))
		}
		expected = o.ID + 1
	}
	if len(operators) == 0 {
		problems = append(problems, missingEntry(c.operatorDir(0), "the query has committed version %d of its state, and no operator has any", committed))
	}
	return operators, problems, nil
}

func (c *Checkpoint) operatorDir(id int64) string {
	return path.Join(c.StateRoot(), strconv.FormatInt(id, 10))
}

// operator reads the metadata of an operator: the newest of version 2, or that of version 1, or none.
func (c *Checkpoint) operator(ctx context.Context, id int64) (Operator, error) {
	dir := c.operatorDir(id)
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

// StoreIDs lists the stores of an operator whose directories are there, by partition and name, and those that are missing: the
// metadata promises them or, where there is none, the other partitions and the offset log do. A directory that cannot be listed
// counts as there. Before a batch is done none is missing. An operator that Spark runs in one partition has partition 0 alone, although its metadata counts those of the query.
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
	promised := slices.Clone(o.Stores)
	for _, id := range found {
		there[id] = true
		named := slices.ContainsFunc(promised, func(s StoreInfo) bool { return s.Name == id.Name })
		if o.Stores == nil && !named {
			promised = append(promised, StoreInfo{Name: id.Name, Partitions: c.Pins.Partitions()})
		}
	}
	if len(c.Commits) == 0 && c.LastOffset() == 0 {
		promised = nil // the first batch makes the directories, and is not known to be done
	}
	single := c.single(ctx, o, found)
	for _, s := range promised {
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

// Names of operators in their metadata.
const (
	globalLimit = "globalLimit"
	aggregation = "stateStoreSave"
)

// single tells whether Spark runs an operator in one partition: a global limit, and an aggregation without keys. Where there
// is no metadata the schema tells them; where there is no schema either, partition 0 alone is taken for all.
func (c *Checkpoint) single(ctx context.Context, o Operator, found []statestore.StoreID) bool {
	if o.Name == globalLimit {
		return true
	}
	others := slices.ContainsFunc(found, func(id statestore.StoreID) bool { return id.Partition > 0 })
	if others || o.Name != aggregation && o.Stores != nil {
		return false
	}
	_, schemas, err := c.Schemas(ctx, statestore.StoreID{Operator: o.ID, Name: statestore.DefaultStore})
	if err != nil || len(schemas) == 0 {
		return o.Stores == nil
	}
	return keyless(schemas[0].Key)
}

// keyless tells the schemas of keys that are the same for all rows: without fields, or one that is always null, as a limit has it.
func keyless(schema string) bool {
	var form struct {
		Fields []struct {
			Type any `json:"type"`
		} `json:"fields"`
	}
	if err := json.Unmarshal([]byte(schema), &form); err != nil {
		return false
	}
	return form.Fields != nil && (len(form.Fields) == 0 || len(form.Fields) == 1 && (form.Fields[0].Type == "void" || form.Fields[0].Type == "null"))
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
			if ctx.Err() != nil {
				return nil, err
			}
			return expectedNames(o), nil
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

// expectedNames are the stores that a partition should have.
func expectedNames(o Operator) []string {
	if o.Stores == nil {
		return []string{statestore.DefaultStore}
	}
	var names []string
	for _, s := range o.Stores {
		names = append(names, s.Name)
	}
	return names
}

// isStoreName tells the directories of named stores from those of Spark and of this module.
func isStoreName(name string) bool {
	return name != sstDir && name != logDir && name != "lost+found" && !strings.HasPrefix(name, "_") && !strings.Contains(name, ".")
}
