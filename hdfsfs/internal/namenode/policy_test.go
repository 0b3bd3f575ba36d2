package namenode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
)

const hadoop = "org.apache.hadoop."

func TestPolicyDecides(t *testing.T) {
	var (
		giveUp   = rpc.Decision{Action: rpc.GiveUp}
		atOnce   = rpc.Decision{Action: rpc.Repeat}
		next     = rpc.Decision{Action: rpc.FailOver}
		repeat   = func(d time.Duration) rpc.Decision { return rpc.Decision{Action: rpc.Repeat, Wait: d} }
		nextIn   = func(d time.Duration) rpc.Decision { return rpc.Decision{Action: rpc.FailOver, Wait: d} }
		ms       = time.Millisecond
		answered = func(class string, f rpc.Failure) rpc.Failure {
			f.Cause, f.Class, f.Connected = rpc.Answered, class, true
			return f
		}
	)
	for _, tt := range []struct {
		name    string
		policy  Policy
		failure rpc.Failure
		want    rpc.Decision
	}{
		{"refused once", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 1, Servers: 1, Connected: true}, repeat(500 * ms)},
		{"refused twice", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 2, Servers: 1, Connected: true}, repeat(1000 * ms)},
		{"refused often", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 40, Servers: 1, Connected: true}, repeat(1000 * ms)},
		{"refused for long", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Servers: 1, Connected: true, Elapsed: 10*time.Minute - 1}, repeat(500 * ms)},
		{"refused for too long", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Servers: 1, Connected: true, Elapsed: 10 * time.Minute}, giveUp},
		{"never connected", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 3, Servers: 1, Elapsed: 9 * time.Second}, repeat(1000 * ms)},
		{"never connected for too long", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Servers: 1, Elapsed: 10 * time.Second}, giveUp},
		{"no such host", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 1, Servers: 1, NoSuchHost: true}, giveUp},
		{"no such host any more", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 1, Servers: 1, NoSuchHost: true, Connected: true}, repeat(500 * ms)},
		{"no such host of two", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 1, Servers: 2, NoSuchHost: true}, next},

		{"refused by the first of two", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 1, Servers: 2, Connected: true}, next},
		{"refused by both", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 2, Failovers: 1, Servers: 2, Connected: true}, nextIn(500 * ms)},
		{"refused by both twice", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 4, Failovers: 3, Servers: 2, Connected: true}, nextIn(2000 * ms)},
		{"refused by the second of three", Policy{}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 2, Failovers: 1, Servers: 3, Connected: true}, next},

		{"lost", Policy{}, rpc.Failure{Cause: rpc.Lost, Attempts: 1, Servers: 1, Connected: true}, atOnce},
		{"lost, at most once", Policy{}, rpc.Failure{Cause: rpc.Lost, Semantics: rpc.AtMostOnce, Attempts: 1, Servers: 1, Connected: true}, atOnce},
		{"lost of two", Policy{}, rpc.Failure{Cause: rpc.Lost, Attempts: 1, Servers: 2, Connected: true}, atOnce},
		{"silent of two", Policy{}, rpc.Failure{Cause: rpc.Lost, Silent: true, Attempts: 1, Servers: 2, Connected: true}, next},
		{"the only one is silent", Policy{}, rpc.Failure{Cause: rpc.Lost, Silent: true, Attempts: 1, Servers: 1, Connected: true}, repeat(500 * ms)},
		{"lost twice", Policy{}, rpc.Failure{Cause: rpc.Lost, Attempts: 2, Servers: 1, Connected: true}, repeat(1000 * ms)},
		{"lost twice of two", Policy{}, rpc.Failure{Cause: rpc.Lost, Attempts: 2, Servers: 2, Connected: true}, next},

		{"standby of two", Policy{}, answered(hadoop+"ipc.StandbyException", rpc.Failure{Attempts: 1, Servers: 2}), next},
		{"both standby", Policy{}, answered(hadoop+"ipc.StandbyException", rpc.Failure{Attempts: 2, Failovers: 1, Servers: 2}), nextIn(500 * ms)},
		{"the only one is standby", Policy{}, answered(hadoop+"ipc.StandbyException", rpc.Failure{Attempts: 1, Servers: 1}), repeat(500 * ms)},
		{"observer without locations", Policy{}, answered(hadoop+"ipc.ObserverRetryOnActiveException", rpc.Failure{Attempts: 1, Servers: 2}), next},
		{"busy for long", Policy{}, answered(hadoop+"ipc.RetriableException", rpc.Failure{Attempts: 9, Servers: 1}), repeat(1000 * ms)},
		{"busy for long, with another one", Policy{}, answered(hadoop+"ipc.RetriableException", rpc.Failure{Attempts: 9, Servers: 2}), repeat(15 * time.Second)},
		{"the only one is busy again", Policy{}, answered(hadoop+"ipc.RetriableException", rpc.Failure{Attempts: 2, Servers: 1}), repeat(1000 * ms)},
		{"busy", Policy{}, answered(hadoop+"ipc.RetriableException", rpc.Failure{Attempts: 1, Servers: 2}), repeat(500 * ms)},
		{"safe mode", Policy{}, answered(hadoop+"hdfs.server.namenode.SafeModeException", rpc.Failure{Attempts: 1, Servers: 1}), repeat(500 * ms)},
		{"safe mode for long", Policy{}, answered(hadoop+"hdfs.server.namenode.SafeModeException", rpc.Failure{Attempts: 30, Servers: 1}), repeat(1000 * ms)},
		{"safe mode of one of two for long", Policy{}, answered(hadoop+"hdfs.server.namenode.SafeModeException", rpc.Failure{Attempts: 30, Servers: 2}), repeat(1000 * ms)},
		{"safe mode, other waits", Policy{Base: ms, Max: 3 * ms}, answered(hadoop+"hdfs.server.namenode.SafeModeException", rpc.Failure{Attempts: 30, Servers: 1}), repeat(3 * ms)},
		{"safe mode for too long", Policy{RetryFor: time.Second}, answered(hadoop+"hdfs.server.namenode.SafeModeException", rpc.Failure{Attempts: 3, Servers: 1, Elapsed: time.Second}), giveUp},
		{"block not replicated", Policy{}, answered(hadoop+"hdfs.server.namenode.NotReplicatedYetException", rpc.Failure{Attempts: 1, Servers: 1}), repeat(5 * ms)},
		{"block not replicated for long", Policy{}, answered(hadoop+"hdfs.server.namenode.NotReplicatedYetException", rpc.Failure{Attempts: 20, Servers: 1}), repeat(1000 * ms)},
		{"block not replicated for too long", Policy{}, answered(hadoop+"hdfs.server.namenode.NotReplicatedYetException", rpc.Failure{Attempts: 20, Servers: 1, Elapsed: 30 * time.Second}), giveUp},
		{"encryption zones changed", Policy{}, answered(hadoop+"hdfs.server.namenode.RetryStartFileException", rpc.Failure{Attempts: 10, Servers: 1}), atOnce},
		{"encryption zones change all the time", Policy{}, answered(hadoop+"hdfs.server.namenode.RetryStartFileException", rpc.Failure{Attempts: 11, Servers: 1}), giveUp},
		{"file exists", Policy{}, answered(hadoop+"fs.FileAlreadyExistsException", rpc.Failure{Attempts: 1, Servers: 2}), giveUp},
		{"no permission", Policy{}, answered(hadoop+"security.AccessControlException", rpc.Failure{Attempts: 1, Servers: 2}), giveUp},
		{"token", Policy{}, answered(hadoop+"security.token.SecretManager$InvalidToken", rpc.Failure{Attempts: 1, Servers: 2}), giveUp},
		{"fenced", Policy{}, answered(hadoop+"hdfs.server.namenode.LeaseExpiredException", rpc.Failure{Attempts: 1, Servers: 1}), giveUp},
		{"any other", Policy{}, answered("java.io.IOException", rpc.Failure{Attempts: 1, Servers: 1}), giveUp},

		{"not the protocol", Policy{}, rpc.Failure{Cause: rpc.Refused, Attempts: 1, Servers: 2, Connected: true}, giveUp},
		{"no retries", Policy{RetryFor: -1}, rpc.Failure{Cause: rpc.Lost, Attempts: 1, Servers: 1, Connected: true}, giveUp},
		{"other waits", Policy{Base: ms, Max: 3 * ms}, rpc.Failure{Cause: rpc.NoConnection, Attempts: 3, Servers: 1, Connected: true}, repeat(3 * ms)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, tt.policy.Decide(tt.failure))
			tt.failure.Semantics = rpc.AtMostOnce
			require.Equal(t, tt.want, tt.policy.Decide(tt.failure), "the retry cache makes both kinds the same")
		})
	}
}
