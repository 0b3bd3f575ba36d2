package hdfsfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/hdfsckpt/hdfsckpt/core"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/blockread"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/datanode"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/pipeline"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/rpc"
	"github.com/hdfsckpt/hdfsckpt/hdfsfs/internal/wire"
)

// fromNative turns an error of the packages below internal into one of a client.
func fromNative(err error) error {
	var (
		answer *rpc.ServerError
		lost   *rpc.TransportError
	)
	switch {
	case err == nil || err == io.EOF || isEnd(err): //nolint:errorlint // only the bare one is the end of a file
		return err
	case errors.As(err, &answer):
		return &remoteError{method: answer.Method, class: answer.Class, message: firstLine(answer.Message, answer.Class)}
	case errors.As(err, &lost):
		return &connError{err: err, doubt: lost.Sent}
	case errors.Is(err, blockread.ErrChecksum):
		return fmt.Errorf("%w: %w", core.ErrCorrupt, err)
	case errors.Is(err, blockread.ErrNoReplica):
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	case errors.Is(err, blockread.ErrChanged):
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case errors.Is(err, wire.ErrMalformed) && !errors.Is(err, core.ErrUnavailable):
		return fmt.Errorf("%w: a server does not keep to the protocol: %w", core.ErrUnavailable, err)
	}
	return err
}

// fromPipeline does the same for a file that is written. What a DataNode has done to it may go well with others.
func fromPipeline(err error) error {
	var node *datanode.NodeError
	var known *remoteError
	err = fromNative(err)
	switch {
	case err == nil || isEnd(err) || errors.As(err, &known):
		return err
	case errors.Is(err, pipeline.ErrTooFewReplicas) || errors.As(err, &node) || !hasMeaning(err):
		return fmt.Errorf("%w: the file could not be written: %w", core.ErrUnavailable, err)
	}
	return err
}

func hasMeaning(err error) bool {
	for _, sentinel := range []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, errors.ErrUnsupported,
		core.ErrCorrupt, core.ErrNoSpace, core.ErrQuota, core.ErrUnavailable,
	} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// millis is a time of the NameNode.
func millis(ms uint64) time.Time { return time.UnixMilli(int64(ms)) } //nolint:gosec // below 2^63
