package hdfsfs

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hdfsckpt/hdfsckpt/core"
)

func TestExceptionsMeanWhatTheContractSays(t *testing.T) {
	const names = "org.apache.hadoop.hdfs.server.namenode."
	for _, tt := range []struct {
		class, message string
		want           error
	}{
		{"java.io.FileNotFoundException", "File does not exist: /a", fs.ErrNotExist},
		{names + "LeaseExpiredException", "No lease on /a (inode 5): File does not exist.", fs.ErrNotExist},
		{"java.io.IOException", "BP-1:blk_2_3 does not exist or is not under construction null", fs.ErrNotExist},
		{"java.io.IOException", "Unexpected BlockUCState: BP-1:blk_2_3 is UNDER_RECOVERY but not UNDER_CONSTRUCTION", fs.ErrNotExist},
		{"org.apache.hadoop.fs.FileAlreadyExistsException", "/a for client 1 already exists", fs.ErrExist},
		{"org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException", "", fs.ErrExist},
		{"org.apache.hadoop.hdfs.protocol.RecoveryInProgressException", "", fs.ErrExist},
		{"org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", "`/a is non empty': Directory is not empty", fs.ErrExist},
		{"java.io.IOException", "Source /a and destination /b must both be directories", fs.ErrExist},
		{"org.apache.hadoop.security.AccessControlException", "Permission denied: user=bob, access=WRITE", fs.ErrPermission},
		{"org.apache.hadoop.security.AccessControlException", "/a (is not a directory)", fs.ErrInvalid},
		{"org.apache.hadoop.fs.ParentNotDirectoryException", "/a (is not a directory)", fs.ErrInvalid},
		{"org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException", "", fs.ErrInvalid},
		{"org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException", "", core.ErrQuota},
		{"org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", "", core.ErrQuota},
		{"org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "", core.ErrNoSpace},
		{names + "SafeModeException", "Cannot create file/a. Name node is in safe mode.", core.ErrUnavailable},
		{standbyException, "", core.ErrUnavailable},
		{"org.apache.hadoop.ipc.RetriableException", "", core.ErrUnavailable},
		{"java.io.IOException", "File /a could only be written to 0 of the 1 minReplication nodes.", core.ErrUnavailable},
		{"org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException", "", errors.ErrUnsupported},
		{"java.io.IOException", "something else", nil},
	} {
		err := error(&remoteError{class: tt.class, message: tt.message})
		require.Equal(t, tt.want, errors.Unwrap(err), "%v", err)
		require.NotContains(t, err.Error(), "org.apache")
		if tt.want != nil {
			require.ErrorIs(t, core.PathError("op", "/a", err), tt.want)
		}
	}
}

func TestAMessageIsItsFirstLine(t *testing.T) {
	require.Equal(t, "Permission denied", firstLine("org.x.AccessControlException: Permission denied\n\tat org.x.Y", "org.x.AccessControlException"))
	require.Less(t, len(firstLine(strings.Repeat("ü", 5000), "c")), 600)
	require.Equal(t, "AccessControlException", (&remoteError{class: "org.x.AccessControlException"}).Error())
}
