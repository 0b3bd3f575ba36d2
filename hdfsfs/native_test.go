package hdfsfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/blockread"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/namenode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/pipeline"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

func TestErrorsOfTheNativeClientSayWhatACallerCanDo(t *testing.T) {
	exception := func(class string) error {
		return fmt.Errorf("about a block: %w", &rpc.ServerError{Server: "nn:8020", Method: "complete", Class: class, Message: "the message"})
	}
	node := &datanode.NodeError{Node: "dn:9866", Op: "connect", Err: errors.New("refused")}
	for _, tt := range []struct {
		name  string
		err   error
		calls error // what it is after a call
		write error // what it is after a write
	}{
		{"none", nil, nil, nil},
		{"the end of a file", io.EOF, io.EOF, io.EOF},
		{"a context", fmt.Errorf("%w; the last failure was: %w", context.Canceled, exception("x.StandbyException")), context.Canceled, context.Canceled},
		{"a client that was closed", rpc.ErrClosed, fs.ErrClosed, fs.ErrClosed},
		{"a lease that is another's", exception("org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException"), fs.ErrNotExist, fs.ErrNotExist},
		{"a file that was removed", exception("java.io.FileNotFoundException"), fs.ErrNotExist, fs.ErrNotExist},
		{"a name that is taken", exception("org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException"), fs.ErrExist, fs.ErrExist},
		{"a quota", exception("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException"), core.ErrNoSpace, core.ErrNoSpace},
		{"an encryption zone", exception("org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException"), errors.ErrUnsupported, errors.ErrUnsupported},
		{"no NameNode", &rpc.TransportError{Server: "nn:8020", Err: errors.New("refused")}, core.ErrUnavailable, core.ErrUnavailable},
		{"damage everywhere", blockread.ErrChecksum, core.ErrCorrupt, core.ErrCorrupt},
		{"no DataNode", blockread.ErrNoReplica, core.ErrUnavailable, core.ErrUnavailable},
		{"other blocks", blockread.ErrChanged, fs.ErrNotExist, fs.ErrNotExist},
		{"striped blocks", blockread.ErrLayout, errors.ErrUnsupported, errors.ErrUnsupported},
		{"a peer that talks nonsense", wire.ErrMalformed, core.ErrUnavailable, core.ErrUnavailable},
		{"too few replicas", pipeline.ErrTooFewReplicas, pipeline.ErrTooFewReplicas, core.ErrUnavailable},
		{"a DataNode", node, node, core.ErrUnavailable},
		{"a DataNode without a file", &datanode.NodeError{Op: "connect", Err: fs.ErrNotExist}, fs.ErrNotExist, core.ErrUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorIs(t, fromNative(tt.err), tt.calls)
			require.ErrorIs(t, fromPipeline(tt.err), tt.write)
		})
	}
	lost := fromNative(&rpc.TransportError{Server: "nn:8020", Sent: true, Err: io.ErrUnexpectedEOF})
	require.True(t, inDoubt(lost))
	require.False(t, inDoubt(fromNative(&rpc.TransportError{Server: "nn:8020", Err: io.ErrUnexpectedEOF})))
}

func TestTheClientIsChosenByOptionEnvironmentAndCluster(t *testing.T) {
	for _, tt := range []struct {
		option   ClientKind
		env      string
		kerberos bool
		want     ClientKind
		err      error
	}{
		{want: ClientNative},
		{kerberos: true, want: ClientLibrary},
		{env: "library", want: ClientLibrary},
		{option: ClientNative, env: "library", want: ClientNative},
		{option: ClientLibrary, want: ClientLibrary},
		{option: ClientNative, kerberos: true, err: errors.ErrUnsupported},
		{env: "native", kerberos: true, err: errors.ErrUnsupported},
		{env: "java", err: fs.ErrInvalid},
	} {
		t.Setenv(envClient, tt.env)
		got, err := Options{Client: tt.option}.clientFor(settings{kerberos: tt.kerberos})
		require.ErrorIs(t, err, tt.err, "%+v", tt)
		require.Equal(t, tt.want, got, "%+v", tt)
	}
	_, err := Options{Client: ClientLibrary, StoragePolicy: "ONE_SSD"}.clientFor(settings{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, Options{Client: "java"}.Validate(), fs.ErrInvalid)
}

func TestTheLibrarysClientTellsNoSums(t *testing.T) {
	f := onFake(t, newFake(), Options{})
	_, _, err := f.FileCRC32C(t.Context(), "/file")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestNamesComeInTheOrderOfTheNameNode(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "b", -1}, {"a", "ab", -1}, {"ü", "a", -1}, {"aü", "a", 1}, {"aü", "ab", -1}, {"ü", "€", -1}} {
		require.Equal(t, tt.want, namenode.CompareNames([]byte(tt.a), []byte(tt.b)), "%q, %q", tt.a, tt.b)
		require.Equal(t, -tt.want, namenode.CompareNames([]byte(tt.b), []byte(tt.a)), "%q, %q", tt.b, tt.a)
	}
}

func TestARenameByAClientThatRepeatsIsOneCall(t *testing.T) {
	c := newFake()
	c.can.repeats = true
	f := onFake(t, c, Options{})
	for _, name := range []string{"/a", "/b", "/c"} {
		require.NoError(t, put(t.Context(), f, name, []byte(name)))
	}
	require.NoError(t, f.MkdirAll(t.Context(), "/d"))
	require.NoError(t, f.MkdirAll(t.Context(), "/e"))
	stats := c.count("stat")
	require.NoError(t, f.Rename(t.Context(), "/a", "/a2", core.RenameNoReplace))
	require.NoError(t, f.Rename(t.Context(), "/a2", "/a3", core.RenameReplace))
	require.ErrorIs(t, f.Rename(t.Context(), "/a3", "/b", core.RenameNoReplace), fs.ErrExist)
	require.ErrorIs(t, f.Rename(t.Context(), "/missing", "/x", core.RenameNoReplace), fs.ErrNotExist)
	require.Equal(t, stats, c.count("stat"))
	require.Equal(t, 4, c.count("rename"))

	require.NoError(t, f.Rename(t.Context(), "/b", "/c", core.RenameReplace), "the new name is taken")
	got, err := get(t.Context(), f, "/c")
	require.NoError(t, err)
	require.Equal(t, "/b", string(got))
	require.ErrorIs(t, f.Rename(t.Context(), "/d", "/e", core.RenameReplace), fs.ErrExist, "a directory replaces nothing")
	require.ErrorIs(t, f.Rename(t.Context(), "/d", "/d/x", core.RenameReplace), fs.ErrInvalid)
	require.NoError(t, f.Rename(t.Context(), "/c", "/c", core.RenameReplace))
	require.ErrorIs(t, f.Rename(t.Context(), "/c", "/c", core.RenameNoReplace), fs.ErrExist)

	c.after = failing("rename", -1, &connError{err: errors.New("EOF"), doubt: true})
	err = f.Rename(t.Context(), "/c", "/z", core.RenameNoReplace)
	require.ErrorIs(t, err, core.ErrUnavailable)
	require.ErrorContains(t, err, "not known")
}
