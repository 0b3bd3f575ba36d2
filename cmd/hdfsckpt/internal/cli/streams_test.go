package cli

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/cmd/hdfsckpt/internal/report"
	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/core/faultfs"
)

// brokenWriter takes some bytes and then fails.
type brokenWriter struct {
	room int
	err  error
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if len(p) <= w.room {
		w.room -= len(p)
		return len(p), nil
	}
	return w.room, w.err
}

func TestAnOutputThatCannotBeWrittenIsNoSuccess(t *testing.T) {
	for _, args := range []string{"ls", "latest", "inspect", "verify", "ls --json", "inspect --format flink-dump", "dispose --yes --force", "--help", "--version"} {
		for name, tt := range map[string]struct {
			err   error
			exit  int
			quiet bool
		}{
			"closed pipe": {syscall.EPIPE, 141, true},
			"full disk":   {syscall.ENOSPC, 3, false},
		} {
			t.Run(args+" "+name, func(t *testing.T) {
				r := newRig(t)
				j := r.newJob("jobs", jobID)
				j.checkpoint(1)
				r.adjust = func(p *Program) { p.Stdout = &brokenWriter{room: 5, err: tt.err} }
				fields := strings.Fields(args)
				switch fields[0] {
				case "ls", "latest":
					fields = append(fields, j.dir())
				case "inspect", "verify", "dispose":
					fields = append(fields, j.dir()+"/chk-1")
				}
				got := r.run(fields...)
				require.Equal(t, tt.exit, got.code)
				require.Equal(t, tt.quiet, got.stderr == "")
				if fields[0] == "dispose" {
					require.NoDirExists(t, j.dir()+"/chk-1", "what was asked for is done all the same")
				}
			})
		}
	}
}

func TestErrorsThatNobodyReadsDoNotChangeTheExitCode(t *testing.T) {
	r := newRig(t)
	r.adjust = func(p *Program) { p.Stderr = &brokenWriter{err: syscall.EPIPE} }
	require.Equal(t, 3, r.run("ls", "nowhere").code)
}

// hang holds the first call of op until the context ends; hanging is closed when it has begun.
func hang(op faultfs.Op, suffix string) (inject faultfs.Injector, hanging chan struct{}) {
	hanging = make(chan struct{})
	never := make(chan struct{})
	begun := before(op, suffix, func() { close(hanging) })
	return func(c faultfs.Call) faultfs.Fault {
		begun(c)
		if c.Op == op && strings.HasSuffix(c.Name, suffix) {
			return faultfs.Fault{Block: never}
		}
		return faultfs.Fault{}
	}, hanging
}

func TestInterruptedVerbsExitWith130AndTellWhatIsKnown(t *testing.T) {
	for _, tt := range []struct {
		args string
		op   faultfs.Op
		at   string
	}{
		{"ls", faultfs.OpList, jobID.String()},
		{"ls", faultfs.OpStat, core.MetadataName},
		{"latest", faultfs.OpOpen, core.MetadataName},
		{"inspect", faultfs.OpOpen, core.MetadataName},
		{"verify --deep --parallel 1", faultfs.OpOpen, "-0000-4000-8000-000000000000"},
		{"dispose --force --yes", faultfs.OpRename, core.MetadataName},
	} {
		for _, form := range []string{"", " --json"} {
			t.Run(tt.args+form+" "+string(tt.op), func(t *testing.T) {
				r := newRig(t)
				j := r.newJob("jobs", jobID)
				c := j.checkpoint(1)
				inject, hanging := hang(tt.op, tt.at)
				r.inject(inject)
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					<-hanging
					cancel(report.ErrInterrupted)
				}()
				args := strings.Fields(tt.args + form)
				if args[0] == "ls" || args[0] == "latest" {
					args = append(args, j.dir())
				} else {
					args = append(args, c.Pointer)
				}
				got := r.runContext(ctx, args...)
				require.Equal(t, 130, got.code)
				if form == "" {
					require.Contains(t, got.stderr, "hdfsckpt: interrupted\n")
					return
				}
				d := r.decode(got, nil)
				require.Len(t, d.Errors, 1)
				require.Equal(t, report.Interrupted, d.Errors[0].Kind)
			})
		}
	}
}

func TestAnInterruptedVerifyIsNoVerdict(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	c := j.checkpoint(1)
	inject, hanging := hang(faultfs.OpOpen, "00000006-0000-4000-8000-000000000000")
	r.inject(inject)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-hanging
		cancel(report.ErrInterrupted)
	}()
	var v report.Verification
	r.decode(r.runContext(ctx, "verify", "--deep", "--parallel", "1", "--json", c.Pointer), &v)
	require.Equal(t, report.Unknown, v.Checkpoints[0].Verdict)
	require.Equal(t, 1, v.Checkpoints[0].Checked, "the file before it")
	require.Equal(t, 4, v.Checkpoints[0].Objects)
	require.Empty(t, v.Checkpoints[0].Findings)
}

func TestTimeoutEndsAVerbThatHangs(t *testing.T) {
	r := newRig(t)
	j := r.newJob("jobs", jobID)
	j.checkpoint(1)
	inject, _ := hang(faultfs.OpOpen, core.MetadataName)
	r.inject(inject)
	begin := time.Now()
	got := r.run("latest", "--timeout", "50ms", j.dir())
	require.Less(t, time.Since(begin), 5*time.Second)
	require.Equal(t, 3, got.code)
	require.Contains(t, got.stderr, "hdfsckpt: not done within the time that --timeout allows\n")
	d := r.json(nil, "verify", "--timeout", "50ms", j.dir()+"/chk-1")
	require.Equal(t, report.Timeout, d.Errors[0].Kind)
	require.Equal(t, 0, r.run("ls", "--quick", "--timeout", "1h", j.dir()).code)
}

func TestColorsAreForTerminalsOnly(t *testing.T) {
	r := newRig(t)
	j := jobWithAllStates(r)
	colored := func(args ...string) bool {
		return strings.Contains(r.run(append(args, j.dir())...).stdout, "\x1b[")
	}
	require.False(t, colored("ls"))
	r.adjust = func(p *Program) { p.StdoutTerminal = true }
	require.True(t, colored("ls"))
	require.False(t, colored("ls", "--no-color"))
	require.False(t, colored("ls", "--json"))
	require.False(t, colored("latest"))
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		r.env = map[string]string{name: value}
		require.False(t, colored("ls"))
	}
	r.env = map[string]string{"NO_COLOR": "", "TERM": "xterm"}
	require.True(t, colored("ls"))
}

func TestProgressIsForTerminalsAndOnRequest(t *testing.T) {
	r := newRig(t)
	c := r.newJob("jobs", jobID).checkpoint(1)
	run := func(args ...string) string {
		return r.run(append([]string{"verify", "--deep", c.Pointer}, args...)...).stderr
	}
	require.Empty(t, run())
	require.Contains(t, run("--progress"), "4/4 objects, 1.8 MiB/1.8 MiB")
	require.Empty(t, run("--json", "--progress"))
	r.adjust = func(p *Program) { p.StderrTerminal = true }
	require.Empty(t, run(), "what is done at once does not flicker")
	r.inject(faultfs.OnOp(faultfs.OpOpen, faultfs.Fault{Delay: 250 * time.Millisecond}))
	onTerminal := run("--parallel", "1")
	require.Contains(t, onTerminal, "\r")
	require.True(t, strings.HasSuffix(onTerminal, " \r"), "the line is removed at the end: %q", onTerminal)
	require.Empty(t, run("--json"))
}

func TestAConnectionThatDoesNotCloseIsLeftToTheEndOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(session)
		begin := time.Now()
		s.close(closer(func() error { return nil }))
		require.Zero(t, time.Since(begin))
		hung := make(chan struct{})
		defer close(hung)
		s.close(closer(func() error { <-hung; return nil }))
		require.Equal(t, closeTime, time.Since(begin))
	})
}

type closer func() error

func (c closer) Close() error { return c() }
