package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/kerberos"
)

func TestACauseIsFoundByTheStepAndTheError(t *testing.T) {
	said := func(text string) error { return core.PathError("create", "/a", errors.New(text)) }
	for _, tt := range []struct {
		name  string
		step  StepName
		err   error
		plain string
		kind  Kind
	}{
		{"safe mode", StepWrite, said("org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create file/a. Name node is in safe mode."), "the NameNode is in safe mode", Unavailable},
		{"safe mode goes before unavailable", StepWrite, fmt.Errorf("%w: SafeModeException", core.ErrUnavailable), "the NameNode is in safe mode", Unavailable},
		{"standby", StepNameNodes, said("org.apache.hadoop.ipc.StandbyException: Operation category READ is not supported in state standby"), "none of the NameNodes", Unavailable},
		{"simple client", StepNameNodes, said("SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]"), "the cluster wants Kerberos", Permission},
		{"KDC down", StepLogin, fmt.Errorf("x: %w", kerberos.ErrUnreachable), "no KDC answers", Unavailable},
		{"wrong key", StepLogin, fmt.Errorf("x: %w", kerberos.ErrCredentials), "the login failed", Permission},
		{"no keytab", StepLogin, core.PathError("open", "/k", fs.ErrNotExist), "there is nothing to log in with", Permission},
		{"no DataNodes", StepWrite, said("File /a could only be written to 0 of the 1 minReplication nodes. There are 0 datanode(s) running"), "no DataNode could take", Unavailable},
		{"DataNode in an inner network", StepWrite, said("dial tcp 172.18.0.3:9866: i/o timeout"), "a DataNode cannot be reached", Unavailable},
		{"NameNode down", StepNameNodes, said("dial tcp 10.0.0.1:8020: connect: connection refused"), "nothing listens", Unavailable},
		{"unknown host", StepNameNodes, said("dial tcp: lookup nn.x: no such host"), "does not know the host", Unavailable},
		{"web page", StepNameNodes, said("no available namenodes: not a packet of Hadoop's RPC: an answer of 1213486160 bytes"), "not the RPC of a NameNode", Unavailable},
		{"no answer", StepDirectory, context.DeadlineExceeded, "there was no answer", Timeout},
		{"no permission", StepWrite, core.PathError("mkdir", "/a", fs.ErrPermission), "no permission", Permission},
		{"full", StepWrite, core.PathError("write", "/a", core.ErrNoSpace), "there is no space", NoSpace},
		{"quota", StepWrite, core.PathError("create", "/a", core.ErrQuota), "the quota of names", NoSpace},
		{"erasure coding", StepWrite, core.PathError("create", "/a", errors.ErrUnsupported), "of a kind that this library refuses", Unsupported},
		{"corrupt", StepRead, core.PathError("read", "/a", core.ErrCorrupt), "other bytes were read", Damaged},
		{"no configuration", StepConfiguration, core.PathError("open", "/etc/hadoop", fs.ErrNotExist), "there is no such configuration", NotFound},
		{"not exclusive", StepExclusive, core.PathError("create", "/a", ErrNotRefused), "not safe for checkpoints", Refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Diagnose(t.Context(), tt.step, tt.err)
			require.Contains(t, p.Message, tt.plain)
			require.Contains(t, p.Message, tt.err.Error(), "what was said is not lost")
			require.Equal(t, tt.kind, p.Kind)
			require.NotEmpty(t, p.Hint)
		})
	}
	p := Diagnose(t.Context(), StepWrite, errors.New("anything else"))
	require.Equal(t, "anything else", p.Message)
}

func TestAnInterruptionIsNotDiagnosed(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrInterrupted)
	p := Diagnose(ctx, StepWrite, core.PathError("create", "/a", context.Canceled))
	require.Equal(t, Interrupted, p.Kind)
	require.Equal(t, ErrInterrupted.Error(), p.Message)
}

func TestAnExaminationIsHealthyIfNoStepFailed(t *testing.T) {
	require.True(t, NewExamination("u", "", []Step{{Status: StepOK}, {Status: StepSkipped}}).Healthy)
	problem := Problem{Kind: Unavailable}
	e := NewExamination("u", "", []Step{{Status: StepOK}, {Status: StepFailed, Problem: &problem}})
	require.False(t, e.Healthy)
	require.Equal(t, []Problem{problem}, e.Problems())
}
