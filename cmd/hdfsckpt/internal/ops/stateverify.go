package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/progress"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

// StateVerifyOptions of a verification.
type StateVerifyOptions struct {
	// Only are the stores to verify; nil fields are all.
	Operator, Partition *int64
	Store               *string
	// Parallel is how many stores are verified at the same time; each holds up to two versions in memory.
	Parallel int
	// Meter is told about the progress; it may be nil.
	Meter *progress.Meter
}

func (o StateVerifyOptions) wants(id statestore.StoreID) bool {
	return (o.Operator == nil || *o.Operator == id.Operator) && (o.Partition == nil || *o.Partition == id.Partition) &&
		(o.Store == nil || *o.Store == id.Name)
}

// job is a store to verify.
type job struct {
	id   statestore.StoreID
	name string // of the operator
}

// StateVerify reads all files of the stores of a checkpoint. What is wrong are findings; the problems are what could not be
// looked at as a whole.
func StateVerify(ctx context.Context, open core.Opener, qualified string, opts StateVerifyOptions) (*report.StateVerification, []error, error) {
	c, problems, err := openState(ctx, open, qualified)
	if err != nil {
		return nil, nil, err
	}
	operators, damaged, err := c.Operators(ctx)
	if err != nil {
		return nil, nil, err
	}
	v := &report.StateVerification{Checkpoint: qualified, Stores: []report.StateVerified{}, Findings: []report.StateFinding{}}
	for _, problem := range append(problems, damaged...) {
		v.Findings = append(v.Findings, logFinding(problem))
	}
	var jobs []job
	for _, o := range operators {
		found, missing, err := c.StoreIDs(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range found {
			if opts.wants(id) {
				jobs = append(jobs, job{id, o.Name})
			}
		}
		for _, id := range missing {
			if opts.wants(id) {
				v.Findings = append(v.Findings, missingFinding(o, id))
			}
		}
	}
	if len(jobs) == 0 && len(v.Findings) == 0 {
		return nil, nil, &report.Problem{
			Kind: report.None, Operation: "verify", Path: qualified, Message: fmt.Sprintf("%s has no such store", qualified),
			Hint: "state ls shows which stores there are",
		}
	}
	v.Stores, problems = verifyStores(ctx, c, jobs, opts)
	return v, problems, nil
}

func verifyStores(ctx context.Context, c *sparkckpt.Checkpoint, jobs []job, opts StateVerifyOptions) ([]report.StateVerified, []error) {
	results := make([]report.StateVerified, len(jobs))
	failures := make([]error, len(jobs))
	opts.Meter.Expect(len(jobs), 0)
	each(ctx, opts.Parallel, len(jobs), func(i int) {
		results[i], failures[i] = verifyStore(ctx, c, jobs[i], opts.Meter)
		opts.Meter.Done(1, 0)
	})
	if ctx.Err() != nil {
		return []report.StateVerified{}, []error{ctx.Err()}
	}
	verified := []report.StateVerified{}
	var problems []error
	for i, err := range failures {
		if err != nil {
			problems = append(problems, err)
			continue
		}
		verified = append(verified, results[i])
	}
	return verified, problems
}

func verifyStore(ctx context.Context, c *sparkckpt.Checkpoint, j job, meter *progress.Meter) (report.StateVerified, error) {
	s, err := c.Store(ctx, j.id)
	if err != nil {
		return report.StateVerified{}, err
	}
	meter.Expect(0, s.Bytes())
	found, err := s.Verify(ctx, func(n int64) { meter.Done(0, n) })
	if err != nil {
		return report.StateVerified{}, err
	}
	result := report.StateVerified{
		StateID: stateID(j.id, j.name), Versions: len(found.Versions), Loadable: len(found.Loadable), Files: found.Files, Bytes: found.Bytes,
		WithoutChecksum: found.WithoutChecksum, Findings: []report.StateFinding{},
	}
	for _, f := range found.Findings {
		result.Findings = append(result.Findings, stateFinding(f))
		meter.Found()
	}
	result.Verdict = report.StateVerdict(result.Findings)
	return result, nil
}

func stateFinding(f sparkckpt.Finding) report.StateFinding {
	return report.StateFinding{Kind: string(f.Kind), Severity: f.Severity.String(), Path: f.Path, Message: f.Message, Advice: f.Advice}
}

// logFinding is damage of a log or of metadata.
func logFinding(err error) report.StateFinding {
	f := report.StateFinding{
		Kind: string(sparkckpt.FileCorrupt), Severity: sparkckpt.Damage.String(), Message: err.Error(),
		Advice: "restore it from a copy: Spark needs it to start the query again",
	}
	if paths := report.PathsOf(err); len(paths) > 0 {
		f.Path = paths[0]
	}
	return f
}

func missingFinding(o sparkckpt.Operator, id statestore.StoreID) report.StateFinding {
	return report.StateFinding{
		Kind: string(sparkckpt.FileMissing), Severity: sparkckpt.Damage.String(), Path: o.Dir,
		Message: fmt.Sprintf("the operator's metadata names %s, and its directory is not there", stateID(id, "")), Advice: "restore it from a copy",
	}
}

// StateInfo describes one store.
func StateInfo(ctx context.Context, open core.Opener, t StateTarget) (*report.StateInfo, error) {
	s, err := openStore(ctx, open, t)
	if err != nil {
		return nil, err
	}
	info := &report.StateInfo{
		Checkpoint: t.Checkpoint, StateStore: summary(s, ""), Directory: s.Dir, Pins: pinned(s.Checkpoint().Pins),
		List: []report.StateVersion{}, Schemas: []report.StateSchema{}, Foreign: []string{}, Findings: []report.StateFinding{},
	}
	details, err := s.Describe(ctx)
	if err != nil {
		return nil, err
	}
	if details.Known {
		name := details.Compression.String()
		info.Compression = &name
	}
	if details.RowChecksumKnown {
		info.RowChecksum = &details.RowChecksum
	}
	if details.Chain >= 0 {
		info.Chain = &details.Chain
	}
	for _, v := range details.Versions {
		info.List = append(info.List, stateVersion(v))
	}
	info.Foreign = append(info.Foreign, details.Foreign...)
	for _, f := range details.Findings {
		info.Findings = append(info.Findings, stateFinding(f))
	}
	return info, stateSchemas(ctx, s, info)
}

func stateVersion(v sparkckpt.VersionInfo) report.StateVersion {
	one := report.StateVersion{Version: v.Version.Number, ID: v.Version.ID, Time: v.Time.UTC(), Loadable: v.Loadable, Footer: v.Footer}
	if v.Delta {
		one.Delta = &v.DeltaBytes
	}
	if v.Snapshot {
		one.Snapshot = &v.SnapshotBytes
	}
	return one
}

// stateSchemas adds the schemas; damaged ones become a finding.
func stateSchemas(ctx context.Context, s *sparkckpt.Store, info *report.StateInfo) error {
	version, schemas, err := s.Checkpoint().Schemas(ctx, s.StoreID)
	if errors.Is(err, core.ErrCorrupt) || errors.Is(err, core.ErrUnsupportedVersion) {
		info.Findings = append(info.Findings, logFinding(err))
		return nil
	}
	if err != nil {
		return err
	}
	info.SchemaVersion = version
	for _, schema := range schemas {
		info.Schemas = append(info.Schemas, report.StateSchema{Family: schema.Family, Key: asJSON(schema.Key), Value: asJSON(schema.Value)})
	}
	return nil
}

// asJSON keeps what is not JSON as a string.
func asJSON(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a string can always be encoded
	return quoted
}
