package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// MetadataStream writes a checkpoint's `_metadata`. The bytes go to a temporary; CloseAndFinalize publishes it in one step,
// so that a checkpoint appears complete or not at all, and only if the owner still holds its claim. Close discards; it may
// always be deferred, leaves nothing behind, and breaks a CloseAndFinalize that hangs. The first outcome is final.
//
// Writing is for one goroutine; Close may be called from any.
type MetadataStream struct {
	location *PendingLocation
	file     *AtomicFile
}

// CreateMetadataStream opens the stream of the location's checkpoint. If the checkpoint already has a `_metadata`, the
// error is fs.ErrExist, here or at the latest from CloseAndFinalize; if the owner was fenced, ErrFenced.
func (l *PendingLocation) CreateMetadataStream(ctx context.Context) (*MetadataStream, error) {
	final := l.MetadataName()
	if !l.fresh.CompareAndSwap(true, false) {
		switch _, err := l.fsys.Stat(ctx, final); {
		case err == nil:
			return nil, &fs.PathError{Op: "create", Path: final, Err: fmt.Errorf("%w: the checkpoint is already complete", fs.ErrExist)}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	temp, err := l.metadataTemp()
	if err != nil {
		return nil, PathError("create", final, err)
	}
	file, err := CreateAtomic(ctx, l.fsys, AtomicOptions{
		Temp: temp, Final: final, Mode: RenameNoReplace, Create: l.owner.storage.createOptions(),
	})
	if err != nil {
		return nil, l.owner.explain(ctx, err)
	}
	return &MetadataStream{location: l, file: file}, nil
}

// Write implements io.Writer.
func (m *MetadataStream) Write(p []byte) (int, error) { return m.file.Write(p) }

// Pos is the number of bytes written so far.
func (m *MetadataStream) Pos() int64 { return m.file.Size() }

// Sync makes what was written so far durable in the temporary; nothing is published.
func (m *MetadataStream) Sync() error { return m.file.Sync() }

// CloseAndFinalize publishes the metadata and returns the completed checkpoint. When it returns nil, the metadata has the
// storage's durability under its final name. The error is fs.ErrExist if another metadata was published first, and
// ErrFenced if the owner lost its claim; in both cases nothing of this stream is visible. Only where the text says that
// the outcome is unknown may the file be visible; DisposeOnFailure of the location settles that.
func (m *MetadataStream) CloseAndFinalize() (*Completed, error) {
	l := m.location
	if m.file.live() {
		if err := l.checkSavepointClaim(m.file.ctx); err != nil {
			return nil, m.file.abandon(err)
		}
	}
	if err := m.file.Commit(); err != nil {
		return nil, l.owner.explain(m.file.ctx, err)
	}
	if err := m.confirmClaim(); err != nil {
		return nil, err
	}
	return newCompleted(l.fsys, l.metadataDir(), l.MetadataName(), m.file.Size()), nil
}

// confirmClaim looks at the claim once more where a rename alone does not prove it. Metadata that was found under its final
// name after its rename had got no answer could be the same bytes written by the next owner. A savepoint's temporary is not
// under the claim at all, and the next owner removes what it finds unfinished.
func (m *MetadataStream) confirmClaim() error {
	if !m.file.settled && !m.location.savepoint {
		return nil
	}
	ctx, cancel := cleanupContext(m.file.ctx)
	defer cancel()
	if err := m.location.owner.Check(ctx); err != nil {
		return outcomeUnknown(err)
	}
	m.location.forgetSavepoint(ctx)
	return nil
}

// Close discards the stream unless it was finalised.
func (m *MetadataStream) Close() error { return m.file.Abort() }
