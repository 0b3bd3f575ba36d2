package hdfsfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/hdfsckpt/hdfsckpt/core"
)

// remoteError is an exception of the NameNode.
type remoteError struct {
	method  string
	class   string // of Java, in full
	message string // its first line
}

func (e *remoteError) Error() string {
	class := e.class[strings.LastIndexAny(e.class, ".$")+1:]
	if e.message == "" {
		return class
	}
	return class + ": " + e.message
}

// Unwrap returns what the exception means to a caller, or nil.
func (e *remoteError) Unwrap() error { return meaning(e.class, e.message) }

// connError is a connection that could not be made or has broken.
type connError struct {
	err error
	// doubt says that a request may have been executed although its answer did not come.
	doubt bool
}

func (e *connError) Error() string   { return e.err.Error() }
func (e *connError) Unwrap() []error { return []error{core.ErrUnavailable, e.err} }

// errChecksum is a block whose bytes do not have their checksum, on every replica that was tried.
var errChecksum = fmt.Errorf("%w: the checksum of HDFS is wrong on every replica that answered", core.ErrCorrupt)

// byClass are the exceptions whose class alone tells, by the last part of its name.
var byClass = map[string]error{
	"FileNotFoundException":                 fs.ErrNotExist,
	"LeaseExpiredException":                 fs.ErrNotExist, // of a writer whose file was removed, or whose lease is another's
	"FileAlreadyExistsException":            fs.ErrExist,
	"AlreadyBeingCreatedException":          fs.ErrExist,
	"RecoveryInProgressException":           fs.ErrExist, // of a file whose writer has died
	"PathIsNotEmptyDirectoryException":      fs.ErrExist,
	"ParentNotDirectoryException":           fs.ErrInvalid,
	"InvalidPathException":                  fs.ErrInvalid,
	"HadoopIllegalArgumentException":        fs.ErrInvalid,
	"IllegalArgumentException":              fs.ErrInvalid,
	"PathComponentTooLongException":         fs.ErrInvalid,
	"AccessControlException":                fs.ErrPermission,
	"AuthorizationException":                fs.ErrPermission,
	"SaslException":                         fs.ErrPermission,
	"InvalidToken":                          fs.ErrPermission,
	"SnapshotAccessControlException":        fs.ErrPermission,
	"NSQuotaExceededException":              core.ErrQuota,
	"MaxDirectoryItemsExceededException":    core.ErrQuota,
	"DSQuotaExceededException":              core.ErrNoSpace,
	"QuotaByStorageTypeExceededException":   core.ErrNoSpace,
	"DiskOutOfSpaceException":               core.ErrNoSpace,
	"SafeModeException":                     core.ErrUnavailable,
	"StandbyException":                      core.ErrUnavailable,
	"RetriableException":                    core.ErrUnavailable,
	"ObserverRetryOnActiveException":        core.ErrUnavailable,
	"NotReplicatedYetException":             core.ErrUnavailable,
	"RetryStartFileException":               core.ErrUnavailable,
	"ServerNotRunningYetException":          core.ErrUnavailable,
	"UnknownCryptoProtocolVersionException": errors.ErrUnsupported,
	"UnsupportedOperationException":         errors.ErrUnsupported,
	"RpcNoSuchMethodException":              errors.ErrUnsupported,
	"UnresolvedPathException":               errors.ErrUnsupported, // a symbolic link on the way
	"NoECPolicySetException":                fs.ErrInvalid,
	"RetryCacheEntryExpiredException":       core.ErrUnavailable,
}

// byMessage are those whose class is java.io.IOException, or says too little.
var byMessage = []struct {
	text     string
	sentinel error
}{
	{"could only be written to ", core.ErrUnavailable},
	{"could only be replicated to ", core.ErrUnavailable},
	{"does not exist or is not under construction", fs.ErrNotExist},
	{"Unexpected BlockUCState", fs.ErrNotExist}, // of a writer whose lease is being recovered by another
	{"is not a directory", fs.ErrInvalid},
	{"must both be directories", fs.ErrExist},
	{"rename destination directory is not empty", fs.ErrExist},
	{"File does not exist", fs.ErrNotExist},
	{"NameNode is in safe mode", core.ErrUnavailable},
	{"Unable to close file because", core.ErrUnavailable},
}

// meaning returns the sentinel of an exception, or nil.
func meaning(class, message string) error {
	short := class[strings.LastIndexAny(class, ".$")+1:]
	sentinel, ok := byClass[short]
	if ok && sentinel != fs.ErrPermission { //nolint:errorlint // of the table itself
		return sentinel
	}
	for _, m := range byMessage {
		if strings.Contains(message, m.text) {
			return m.sentinel
		}
	}
	return sentinel
}

// transient reports whether a call may be repeated in the hope of another outcome, because it has had none.
func transient(err error) bool {
	var conn *connError
	if errors.As(err, &conn) {
		return !conn.doubt
	}
	var remote *remoteError
	return errors.As(err, &remote) && errors.Is(err, core.ErrUnavailable) && !strings.Contains(remote.message, "could only be")
}

// inDoubt reports whether a call may or may not have had its effect.
func inDoubt(err error) bool {
	var conn *connError
	return errors.As(err, &conn) && conn.doubt
}

// firstLine is an exception's message without its stack.
func firstLine(message, class string) string {
	line, _, _ := strings.Cut(message, "\n")
	line = strings.TrimSpace(strings.TrimPrefix(line, class+":"))
	const most = 500
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + " …"
	}
	return line
}
