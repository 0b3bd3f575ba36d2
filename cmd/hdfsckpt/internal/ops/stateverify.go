package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

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
	unread, err := c.CheckLogs(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, err
		}
		unread = append(unread, err)
	}
	operators, damaged, err := c.Operators(ctx)
	if err != nil {
		return nil, nil, err
	}
	v := &report.StateVerification{Checkpoint: qualified, Stores: []report.StateVerified{}, Findings: []report.StateFinding{}}
	for _, problem := range slices.Concat(problems, unread, damaged) {
		v.Findings = append(v.Findings, logFinding(problem))
	}
	var jobs []job
	for _, o := range operators {
		found, missing, err := c.StoreIDs(ctx, o)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			v.Findings = append(v.Findings, logFinding(err))
			continue
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
		return nil, nil, noStores(qualified, "verify", len(operators))
	}
	v.Stores = verifyStores(ctx, c, jobs, opts)
	return v, nil, ctx.Err()
}

// noStores is the problem of a checkpoint in which nothing is chosen.
func noStores(qualified, operation string, operators int) error {
	p := &report.Problem{
		Kind: report.None, Operation: operation, Path: qualified, Message: qualified + " has no such store",
		Hint: "state ls shows which stores there are",
	}
	if operators == 0 {
		p.Message, p.Hint = qualified+" has no state stores", "no batch is committed: the query writes its stores with the first"
	}
	return p
}

func verifyStores(ctx context.Context, c *sparkckpt.Checkpoint, jobs []job, opts StateVerifyOptions) []report.StateVerified {
	results := make([]report.StateVerified, len(jobs))
	opts.Meter.Expect(len(jobs), 0)
	each(ctx, opts.Parallel, len(jobs), func(i int) {
		var err error
		if results[i], err = verifyStore(ctx, c, jobs[i], opts.Meter); err != nil {
			opts.Meter.Found()
			results[i] = report.StateVerified{StateID: stateID(jobs[i].id, jobs[i].name), Findings: []report.StateFinding{logFinding(err)}}
			results[i].Verdict = report.StateVerdict(results[i].Findings)
		}
		opts.Meter.Done(1, 0)
	})
	return results
}

// verifyStore verifies a store; the error is what kept it from being looked at.
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

// logFinding is about a log, metadata or a directory: it is damaged, or missing, or could not be looked at.
func logFinding(err error) report.StateFinding {
	f := report.StateFinding{
		Kind: string(sparkckpt.FileCorrupt), Severity: sparkckpt.Damage.String(), Message: err.Error(),
		Advice: "restore it from a copy: Spark needs it to start the query again",
	}
	damaged := errors.Is(err, core.ErrCorrupt) || errors.Is(err, core.ErrUnsupportedVersion)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case errors.Is(err, sparkckpt.ErrNoEntry):
		f.Advice = "move it out of the directory"
	case missing && damaged:
		f.Kind = string(sparkckpt.FileMissing)
	case missing:
		f.Kind, f.Severity = string(sparkckpt.FileMissing), sparkckpt.Unclear.String()
		f.Advice = "if the query is running it has cleaned up meanwhile: verify again"
	case !damaged:
		f.Kind, f.Severity, f.Advice = string(sparkckpt.FileUnreadable), sparkckpt.Unclear.String(), "remove the cause and verify again"
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		f.Path, f.Message = at.Path, at.Err.Error()
	}
	return f
}

func missingFinding(o sparkckpt.Operator, id statestore.StoreID) report.StateFinding {
	return report.StateFinding{
		Kind: string(sparkckpt.FileMissing), Severity: sparkckpt.Damage.String(), Path: o.Dir,
		Message: fmt.Sprintf("%s belongs to the operator, and its directory is not there", stateID(id, "")), Advice: "restore it from a copy",
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
