package cli

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/ops"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/text"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

const stateDumpLong = `Print all entries of a version, sorted by the bytes of their keys: one line for each, key
and value as text in quotation marks. With --raw key and value are hexadecimal digits with
a space between them, and nothing else is on the line.

The bytes are those that the store holds: for the HDFS-backed provider Spark's UnsafeRows
without row checksum, for RocksDB what is in RocksDB, with version bytes, prefixes of
column families and row checksums.

Compression, row checksums and provider are as the offset log pins them; without one they
are told from the files. A damaged snapshot is passed over if the deltas make the same
version, which is said on the standard error. A version that Spark cannot load is an error.`

const stateDumpExample = `  hdfsckpt state dump --raw --operator 0 --partition 3 --store default --version 17 /ckpt/query
  hdfsckpt state dump --raw --version 17 --checkpoint-id 9b47f783-8a87-4bae-b287-744ea4d8f0fa /ckpt/query`

func newStateDump(s *session) *cobra.Command {
	var store stateFlags
	var version versionFlags
	var raw bool
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use: "dump DIR", Short: "Print all entries of a version", Long: stateDumpLong, Example: stateDumpExample,
		Args: s.arguments("DIR", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome {
			wanted, err := version.version(cmd)
			if err != nil {
				return failed(err)
			}
			return v.stateDump(ctx, store, wanted, raw)
		}),
	}
	store.add(cmd)
	version.add(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, "one line for each entry: hexadecimal key, a space, hexadecimal value")
	return cmd
}

func (v *verbContext) stateDump(ctx context.Context, store stateFlags, version sparkckpt.Version, raw bool) outcome {
	target, err := v.stateTarget(store)
	if err != nil {
		return failed(err)
	}
	read, err := ops.ReadState(ctx, v.open, target, version)
	if err != nil {
		return failed(err)
	}
	o := outcome{notes: read.Notes}
	if v.flags.json {
		o.result = read.Dump(target.Checkpoint)
		return o
	}
	o.show = func(p *text.Printer) {
		for e := range read.View.All() {
			if !raw {
				p.Line("%s %s", text.Quoted(e.Key), text.Quoted(e.Value))
			} else if text.StateRaw(p, e.Key, e.Value) != nil {
				return // the printer's failure is found when it is flushed
			}
		}
	}
	return o
}

const stateGetLong = `Print the value of one key, in hexadecimal digits, or with --format text as text in
quotation marks. If there is no such key the exit code is 1.`

func newStateGet(s *session) *cobra.Command {
	var store stateFlags
	var version versionFlags
	var key, form, shown string
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use: "get DIR --key KEY", Short: "Print the value of one key", Long: stateGetLong,
		Example: "  hdfsckpt state get --partition 3 --key 00000000000000000100000018000000 /ckpt/query\n  hdfsckpt state get --key-format text --key user-7 /ckpt/job",
		Args:    s.arguments("DIR", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome {
			wanted, err := version.version(cmd)
			if err != nil {
				return failed(err)
			}
			if !cmd.Flags().Changed("key") {
				return failed(report.UsageProblem("get needs a --key", ""))
			}
			return v.stateGet(ctx, store, wanted, key, form, shown)
		}),
	}
	store.add(cmd)
	version.add(cmd)
	cmd.Flags().StringVar(&key, "key", "", "the `KEY`")
	addKeyForm(cmd, &form)
	cmd.Flags().StringVar(&shown, "format", hexForm, "`FORM` of the value: hex or text")
	_ = cmd.RegisterFlagCompletionFunc("key", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{hexForm, textForm}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (v *verbContext) stateGet(ctx context.Context, store stateFlags, version sparkckpt.Version, key, form, shown string) outcome {
	if shown != hexForm && shown != textForm {
		return failed(report.UsageProblem(fmt.Sprintf("--format is %q: it must be %s or %s", shown, hexForm, textForm), ""))
	}
	bytes, err := parseKey(key, form)
	if err != nil {
		return failed(err)
	}
	target, err := v.stateTarget(store)
	if err != nil {
		return failed(err)
	}
	dump, notes, err := ops.StateGet(ctx, v.open, target, version, bytes)
	if err != nil {
		return outcome{problems: []error{err}, notes: notes}
	}
	return outcome{result: dump, notes: notes, show: func(p *text.Printer) {
		value := []byte(dump.Entries[0].Value)
		if shown == textForm {
			p.Line("%s", text.Quoted(value))
			return
		}
		p.Line("%s", hex.EncodeToString(value))
	}}
}

const stateDiffLong = `Compare two versions of a store. One line for each key that differs, sorted by the bytes of
the keys, in hexadecimal digits; then the counts.

  + KEY VALUE        only --to has it
  - KEY VALUE        only --from has it
  ~ KEY FROM TO      the values differ

A difference is no failure: the exit code is 0.`

func newStateDiff(s *session) *cobra.Command {
	var store stateFlags
	var from, to string
	cmd := &cobra.Command{
		Use: "diff DIR --from N --to N", Short: "Compare two versions of a store", Long: stateDiffLong,
		Example: "  hdfsckpt state diff --partition 3 --from 16 --to 17 /ckpt/query\n  hdfsckpt state diff --from 3_70e0b738-c14f-4eb3-9c39-50deac0c7124 --to 3_94f0bf5d-f61f-43aa-91c4-19c92896e686 /ckpt/query",
		Args:    s.arguments("DIR", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome {
			a, err := parseVersion("from", from)
			if err != nil {
				return failed(err)
			}
			b, err := parseVersion("to", to)
			if err != nil {
				return failed(err)
			}
			target, err := v.stateTarget(store)
			if err != nil {
				return failed(err)
			}
			diff, notes, err := ops.StateDiff(ctx, v.open, target, a, b)
			if err != nil {
				return failed(err)
			}
			return outcome{result: diff, notes: notes, show: func(p *text.Printer) { text.StateDiff(p, diff) }}
		}),
	}
	store.add(cmd)
	cmd.Flags().StringVar(&from, "from", "", "the older version, `N` or N_ID")
	cmd.Flags().StringVar(&to, "to", "", "the newer version, `N` or N_ID")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.NoFileCompletions)
	return cmd
}

// parseVersion parses a version as file names have it.
func parseVersion(flag, given string) (sparkckpt.Version, error) {
	digits, id, hasID := strings.Cut(given, "_")
	var v sparkckpt.Version
	if _, err := fmt.Sscanf(digits, "%d", &v.Number); err != nil || fmt.Sprint(v.Number) != digits || v.Number < 0 || hasID && id == "" {
		return v, report.UsageProblem(fmt.Sprintf("--%s is %q: it must be a version such as 17 or 17_ID", flag, given), "")
	}
	v.ID = id
	return v, nil
}

const stateHistoryLong = `Show what each version did: its records, the number of keys after it, the sizes of its
files. With --key show what became of one key:

  added, changed, removed   by this version
  unchanged                 the version left it, or put the same value again
  absent                    there is no such key
  present                   in the oldest version that can be loaded
  unknown                   the version cannot be loaded

In checkpoint format 2 a version is the one with the id in the commit log.`

func newStateHistory(s *session) *cobra.Command {
	var store stateFlags
	var key, form string
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use: "history DIR", Short: "Show what each version changed", Long: stateHistoryLong,
		Example: "  hdfsckpt state history --partition 3 /ckpt/query\n  hdfsckpt state history --key-format text --key user-7 /ckpt/job",
		Args:    s.arguments("DIR", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome {
			var wanted []byte
			if cmd.Flags().Changed("key") {
				var err error
				if wanted, err = parseKey(key, form); err != nil {
					return failed(err)
				}
				if wanted == nil {
					wanted = []byte{}
				}
			}
			target, err := v.stateTarget(store)
			if err != nil {
				return failed(err)
			}
			history, err := ops.StateHistory(ctx, v.open, target, wanted)
			if err != nil {
				return failed(err)
			}
			return outcome{result: history, show: func(p *text.Printer) { text.StateHistory(p, history) }}
		}),
	}
	store.add(cmd)
	cmd.Flags().StringVar(&key, "key", "", "show the history of this `KEY`")
	addKeyForm(cmd, &form)
	_ = cmd.RegisterFlagCompletionFunc("key", cobra.NoFileCompletions)
	return cmd
}

const stateVerifyLong = `Read every file of the stores of a query and rebuild every version: framing, checksums of
blocks and rows, footers, checksum files, gaps. Each snapshot is compared with what the
deltas make. Of a RocksDB snapshot the metadata and the presence and sizes of its tables are
checked; the tables themselves are not read.

All stores are verified unless --operator, --partition or --store choose. Each is read with
up to two versions of it in memory. One line for each store with the verdict: sound; damaged
(exit code 1); or unknown, if something could not be looked at and nothing is known to be
wrong (exit code 3). Below it the findings, each with what to do about it.`

func newStateVerify(s *session) *cobra.Command {
	var only onlyFlags
	var parallel int
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use: "verify DIR", Short: "Check that every version can be loaded", Long: stateVerifyLong,
		Example: "  hdfsckpt state verify /ckpt/query\n  hdfsckpt state verify --operator 0 --partition 3 /ckpt/query",
		Args:    s.arguments("DIR", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome {
			opts := ops.StateVerifyOptions{Parallel: parallel}
			opts.Operator, opts.Partition, opts.Store = only.given(cmd)
			return v.stateVerify(ctx, only, opts)
		}),
	}
	only.add(cmd)
	cmd.Flags().IntVar(&parallel, "parallel", 2, "verify `N` stores at the same time")
	_ = cmd.RegisterFlagCompletionFunc("parallel", cobra.NoFileCompletions)
	return cmd
}

func (v *verbContext) stateVerify(ctx context.Context, only onlyFlags, opts ops.StateVerifyOptions) outcome {
	if opts.Parallel < 1 || opts.Parallel > maxParallel {
		return failed(report.UsageProblem(fmt.Sprintf("--parallel is %d: it must be from 1 to %d", opts.Parallel, maxParallel), ""))
	}
	target, err := v.stateTarget(only.stateFlags)
	if err != nil {
		return failed(err)
	}
	opts.Meter = v.meter("store")
	verification, problems, err := ops.StateVerify(ctx, v.open, target.Checkpoint, opts)
	opts.Meter.Stop()
	if err != nil {
		return failed(err)
	}
	return outcome{
		result: verification, show: func(p *text.Printer) { text.StateVerification(p, verification) },
		problems: problems, code: verification.ExitCode(),
	}
}

// onlyFlags choose among all stores.
type onlyFlags struct{ stateFlags }

func (f *onlyFlags) add(cmd *cobra.Command) {
	f.stateFlags.add(cmd)
	for name, usage := range map[string]string{
		"operator": "only this operator, `N`", "partition": "only this partition, `N`", "store": "only stores of this `NAME`",
	} {
		flag := cmd.Flags().Lookup(name)
		flag.Usage, flag.DefValue = usage, ""
		if flag.Value.Type() == "int64" {
			flag.DefValue = "0" // which the help does not show
		}
	}
}

// given are the choices, nil where there is none.
func (f *onlyFlags) given(cmd *cobra.Command) (operator, partition *int64, store *string) {
	if cmd.Flags().Changed("operator") {
		operator = &f.operator
	}
	if cmd.Flags().Changed("partition") {
		partition = &f.partition
	}
	if cmd.Flags().Changed("store") {
		store = &f.store
	}
	return operator, partition, store
}
