package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/hdfsckpt/hdfsckpt/testenv"
	"github.com/hdfsckpt/hdfsckpt/testenv/internal/supervisor"
)

// command is the whole command line.
func command() *cobra.Command {
	var o testenv.Options
	root := &cobra.Command{
		Use:   "hdfsenv",
		Short: "A real HDFS for tests: NameNode, DataNodes and KDC as processes on the loopback interface",
		Long: `A real HDFS for tests: NameNode, DataNodes and KDC as processes on the loopback interface.

The flags say which cluster is meant; each combination has one, that of the tests which ask for the same. The processes are
nn, dn1, dn2, …, and kdc with --kerberos.`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	f := root.PersistentFlags()
	f.IntVar(&o.DataNodes, "datanodes", 3, "number of DataNodes")
	f.BoolVar(&o.Kerberos, "kerberos", false, "secure, with a private KDC")
	f.StringVar(&o.Protection, "protection", "", "of data transfer: authentication, integrity or privacy")
	f.DurationVar(&o.TicketLifetime, "ticket-lifetime", 0, "of Kerberos tickets (default 10h)")
	f.StringToStringVarP(&o.Properties, "property", "D", nil, "name=value for daemons and clients")
	f.DurationVar(&o.StartTimeout, "timeout", 3*time.Minute, "how long the daemons may take until they work")

	root.AddCommand(
		upCommand(&o), statusCommand(&o), downCommand(&o),
		orderCommand(&o, "kill", "End a process by SIGKILL", (*testenv.Cluster).Kill),
		orderCommand(&o, "stop", "Make a process hang, by SIGSTOP", (*testenv.Cluster).Stop),
		orderCommand(&o, "cont", "End a stop", (*testenv.Cluster).Continue),
		orderCommand(&o, "upgrade", "Have a DataNode shut down for an upgrade; restart starts it again", (*testenv.Cluster).ShutDownForUpgrade),
		orderCommand(&o, "restart", "Start a process again, and wait until all work together", (*testenv.Cluster).Restart),
		safeModeCommand(&o), fsckCommand(&o), callsCommand(&o), runCommand(),
	)
	return root
}

func upCommand(o *testenv.Options) *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Start the cluster, and let it stay until down", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			c, err := testenv.StartWith(ctx, *o, func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) })
			if err != nil {
				return err
			}
			if err := c.Keep(ctx); err != nil {
				return err
			}
			fmt.Fprintf(out, "# started in %.1f s\nexport HADOOP_CONF_DIR=%s\n", c.StartTime().Seconds(), c.ConfDir())
			if c.Kerberos() {
				who := c.Credentials("")
				fmt.Fprintf(out, "export KRB5_CONFIG=%s\nexport HDFSCKPT_PRINCIPAL=%s@%s\nexport HDFSCKPT_KEYTAB=%s\n",
					who.Krb5Conf, who.Principal, who.Realm, who.Keytab)
			}
			fmt.Fprintf(out, "# %s\n", c.URL())
			return nil
		},
	}
}

func downCommand(o *testenv.Options) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End the cluster, used or not, and remove it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return testenv.Remove(cmd.Context(), *o) },
	}
}

func statusCommand(o *testenv.Options) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "List the processes, and say whether they work together", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := testenv.Find(cmd.Context(), *o)
			if err != nil {
				return err
			}
			processes, err := c.Processes(cmd.Context())
			if err != nil {
				return err
			}
			printProcesses(cmd.OutOrStdout(), processes)
			fmt.Fprintf(cmd.OutOrStdout(), "%s\nHADOOP_CONF_DIR=%s\n", c.URL(), c.ConfDir())
			ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Second)
			defer cancel()
			if err := c.WaitReady(ctx); err != nil {
				return fmt.Errorf("not ready: %w", err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return nil
		},
	}
}

func printProcesses(out io.Writer, processes []testenv.Process) {
	for _, p := range processes {
		state := "dead"
		switch {
		case p.Stopped:
			state = "stopped"
		case p.Running:
			state = "running"
		}
		fmt.Fprintf(out, "%-5s %-8s %8d  %s\n", p.Name, state, p.ID.PID, p.Log)
	}
}

func orderCommand(o *testenv.Options, verb, short string, do func(*testenv.Cluster, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " PROCESS", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := testenv.Find(cmd.Context(), *o)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), o.StartTimeout)
			defer cancel()
			return do(c, ctx, args[0])
		},
	}
}

func safeModeCommand(o *testenv.Options) *cobra.Command {
	return &cobra.Command{
		Use: "safemode enter|leave", Short: "Make the NameNode refuse changes, or allow them", Args: cobra.ExactArgs(1), ValidArgs: []string{"enter", "leave"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cobra.OnlyValidArgs(cmd, args); err != nil {
				return err
			}
			c, err := testenv.Find(cmd.Context(), *o)
			if err != nil {
				return err
			}
			return c.SafeMode(cmd.Context(), args[0] == "enter")
		},
	}
}

func fsckCommand(o *testenv.Options) *cobra.Command {
	return &cobra.Command{
		Use: "fsck [PATH]", Short: "Report the files below a path, their blocks and where these are", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := testenv.Find(cmd.Context(), *o)
			if err != nil {
				return err
			}
			report, err := c.Fsck(cmd.Context(), strings.Join(append(args, "/")[:1], ""))
			fmt.Fprint(cmd.OutOrStdout(), report)
			return err
		},
	}
}

func callsCommand(o *testenv.Options) *cobra.Command {
	return &cobra.Command{
		Use: "calls", Short: "Count the NameNode's calls by clients", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := testenv.Find(cmd.Context(), *o)
			if err != nil {
				return err
			}
			calls, err := c.Calls(cmd.Context())
			fmt.Fprintln(cmd.OutOrStdout(), calls)
			return err
		},
	}
}

// runCommand is the supervisor, which the others start. Its report goes to a pipe that may have no reader any more.
func runCommand() *cobra.Command {
	return &cobra.Command{
		Use: "run FOLDER", Short: "Supervise a cluster until nobody uses it", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			signal.Ignore(syscall.SIGPIPE)
			return supervisor.Run(cmd.Context(), supervisor.Folder(args[0]), cmd.OutOrStdout())
		},
	}
}
