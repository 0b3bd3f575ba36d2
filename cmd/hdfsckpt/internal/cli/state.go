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
	"github.com/hdfsckpt/hdfsckpt/statestore"
	"github.com/hdfsckpt/hdfsckpt/statestore/sparkckpt"
)

const stateLong = `Look into the state stores of a Spark streaming query, and repair them. DIR is the query's
checkpointLocation, the directory that holds offsets, commits and state.

A store is named by --operator, --partition and --store. Version v+1 is what batch v
committed. Where no --version is given it is the one that the query would begin with: that
of the newest batch in the commit log.

Stores of Spark's HDFS-backed provider are read and written. Stores of RocksDB are read as
far as their changelogs lead from version 1 on, and never written: what only RocksDB's own
tables hold is refused.

ls, info, dump, get, diff, history and verify write nothing and can be used on the
directory of a running query. compact, repair and rollback only show what they would do
unless --yes is given, and then refuse a checkpoint that has changed in the last ten
minutes unless --offline says that no query uses it.`

const stateExample = `  hdfsckpt state ls /ckpt/query
  hdfsckpt state dump --raw --operator 0 --partition 3 --version 17 /ckpt/query
  hdfsckpt state verify /ckpt/query
  hdfsckpt state compact --partition 3 --yes /ckpt/query`

func newState(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "state", Short: "Look into the state of a Spark query, and repair it", Long: stateLong, Example: stateExample,
		Args: func(cmd *cobra.Command, args []string) error {
			s.setCurrent(cmd)
			if len(args) > 0 {
				return report.UsageProblem(fmt.Sprintf("state has no verb %q", args[0]), "")
			}
			return report.UsageProblem("state needs a verb, such as ls", "")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newStateLs(s), newStateInfo(s), newStateDump(s), newStateGet(s), newStateDiff(s), newStateHistory(s), newStateVerify(s),
		newStateCompact(s), newStateRepair(s), newStateRollback(s))
	return cmd
}

// stateFlags name a store.
type stateFlags struct {
	operator, partition int64
	store               string
}

func (f *stateFlags) add(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&f.operator, "operator", 0, "`N`, the number of the operator")
	cmd.Flags().Int64Var(&f.partition, "partition", 0, "`N`, the number of the partition")
	cmd.Flags().StringVar(&f.store, "store", statestore.DefaultStore, "`NAME` of the store")
	for _, name := range []string{"operator", "partition", "store"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// target qualifies DIR, and checks what names a store.
func (v *verbContext) stateTarget(f stateFlags) (ops.StateTarget, error) {
	switch {
	case f.operator < 0:
		return ops.StateTarget{}, report.UsageProblem(fmt.Sprintf("--operator is %d: it must not be negative", f.operator), "")
	case f.partition < 0:
		return ops.StateTarget{}, report.UsageProblem(fmt.Sprintf("--partition is %d: it must not be negative", f.partition), "")
	case f.store == "":
		return ops.StateTarget{}, report.UsageProblem("--store is empty", "the store without a name is called "+statestore.DefaultStore)
	}
	if _, err := statestore.StoreDir("/", f.operator, f.partition, f.store); err != nil {
		return ops.StateTarget{}, report.UsageProblem(fmt.Sprintf("--store is %q, which is no name of a store: %v", f.store, err), "state ls shows which stores there are")
	}
	dir, err := v.locate(v.args[0])
	if err != nil {
		return ops.StateTarget{}, err
	}
	id := statestore.StoreID{Operator: f.operator, Partition: f.partition, Name: f.store}
	return ops.StateTarget{Checkpoint: follow(dir), StoreID: id}, nil
}

// versionFlags name a version of a store.
type versionFlags struct {
	number int64
	id     string
}

func (f *versionFlags) add(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&f.number, "version", ops.Newest, "`N`, the version; the default is the one that the query would begin with")
	cmd.Flags().StringVar(&f.id, "checkpoint-id", "", "`ID` of the version in checkpoint format 2; the default is the one in the commit log")
	cmd.Flags().Lookup("version").DefValue = "0" // which the help does not show
	_ = cmd.RegisterFlagCompletionFunc("version", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("checkpoint-id", cobra.NoFileCompletions)
}

// noID stands for no id, as in tables.
const noID = "-"

func (f versionFlags) version(cmd *cobra.Command) (sparkckpt.Version, error) {
	given := cmd.Flags().Changed("version")
	if given && f.number < 0 {
		return sparkckpt.Version{}, report.UsageProblem(fmt.Sprintf("--version is %d: it must not be negative", f.number), "")
	}
	v := sparkckpt.Version{Number: f.number, ID: f.id}
	if v.ID == noID {
		v.ID = ""
	}
	if v.ID != "" && !given {
		return v, report.UsageProblem("--checkpoint-id needs --version", "")
	}
	return v, nil
}

// The forms of keys on the command line.
const (
	hexForm  = "hex"
	textForm = "text"
)

func addKeyForm(cmd *cobra.Command, form *string) {
	cmd.Flags().StringVar(form, "key-format", hexForm, "`FORM` of the key on the command line: hex or text")
	_ = cmd.RegisterFlagCompletionFunc("key-format", cobra.FixedCompletions([]string{hexForm, textForm}, cobra.ShellCompDirectiveNoFileComp))
}

func parseKey(key, form string) ([]byte, error) {
	switch form {
	case textForm:
		return []byte(key), nil
	case hexForm:
		b, err := hex.DecodeString(strings.TrimPrefix(key, "0x"))
		if err != nil {
			return nil, report.UsageProblem(fmt.Sprintf("the key %q is not in hexadecimal digits: %v", key, err), "a key that is plain text needs --key-format text")
		}
		return b, nil
	}
	return nil, report.UsageProblem(fmt.Sprintf("--key-format is %q: it must be %s or %s", form, hexForm, textForm), "")
}

const stateLsLong = `List the state stores of a query: for each operator, partition and store the versions that
files are there for, how many of them can be loaded, and sizes. Names and sizes decide; the
files are read by verify. The column STATE says

  ready       the version that the query would begin with can be loaded
  incomplete  it cannot: files are missing; the exit code is 1
  missing     the store belongs to the operator, and it is not there; exit code 1
  empty       nothing was committed yet

VERSIONS are the lowest and the highest, with their number in brackets where some between
are missing. Without a commit log, as before Spark 2.2, the highest version counts as
committed.`

func newStateLs(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "ls DIR", Short: "List the stores of a query", Long: stateLsLong,
		Example: "  hdfsckpt state ls /ckpt/query\n  hdfsckpt state ls --json /ckpt/query | jq '.result.stores[] | select(.health != \"ready\")'",
		Args:    s.arguments("DIR", false),
		RunE:    s.run(func(ctx context.Context, v *verbContext) outcome { return v.stateLs(ctx) }),
	}
}

func (v *verbContext) stateLs(ctx context.Context) outcome {
	dir, err := v.locate(v.args[0])
	if err != nil {
		return failed(err)
	}
	listing, problems, err := ops.StateList(ctx, v.open, follow(dir))
	if err != nil {
		return failed(err)
	}
	o := outcome{result: listing, show: func(p *text.Printer) { text.StateListing(p, listing) }, problems: problems}
	for _, store := range listing.Stores {
		if store.Health == report.StateIncomplete || store.Health == report.StateMissing {
			o.code = report.ExitFindings
		}
	}
	return o
}

const stateInfoLong = `Show one store: provider, compression and row checksums as pinned and as found; its versions
with times, sizes and whether they can be loaded; how many deltas the newest one replays;
which files have the footer of this project; the schemas of keys and values; names that do
not belong there. The files are not read as a whole: that is what verify does.`

func newStateInfo(s *session) *cobra.Command {
	var store stateFlags
	cmd := &cobra.Command{
		Use: "info DIR", Short: "Show one store with its versions", Long: stateInfoLong,
		Example: "  hdfsckpt state info --operator 0 --partition 3 /ckpt/query\n  hdfsckpt state info --store left-keyToNumValues /ckpt/query",
		Args:    s.arguments("DIR", false),
		RunE: s.run(func(ctx context.Context, v *verbContext) outcome {
			target, err := v.stateTarget(store)
			if err != nil {
				return failed(err)
			}
			info, err := ops.StateInfo(ctx, v.open, target)
			if err != nil {
				return failed(err)
			}
			return outcome{result: info, show: func(p *text.Printer) { text.StateInfo(p, info) }}
		}),
	}
	store.add(cmd)
	return cmd
}
