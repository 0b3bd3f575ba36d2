package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/google/uuid"
)

// Limits and defaults of the state stream, Flink's own.
const (
	// DefaultInlineThreshold is the largest state in bytes that is kept inline by default.
	DefaultInlineThreshold = 20 << 10
	// MaxInlineThreshold is the largest threshold that is accepted.
	MaxInlineThreshold = 1 << 20
	// MaxWriteBuffer is the largest write buffer in bytes that is accepted.
	MaxWriteBuffer = 64 << 20
	// DefaultWriteBuffer is the default size of the write buffer in bytes; it is raised to the threshold.
	DefaultWriteBuffer = 4 << 10
	// NeverInline as InlineThreshold makes every state that is not empty a file.
	NeverInline = -1
)

// Opener finds the file system of a qualified path such as "hdfs://ns1/a/b" and the name of the path there.
type Opener func(ctx context.Context, qualified string) (fsys FileSystem, name string, err error)

// OnlyOn is the Opener that knows one file system. Paths without a scheme are its own; others are refused with
// fs.ErrInvalid.
func OnlyOn(fsys FileSystem) Opener {
	return func(_ context.Context, qualified string) (FileSystem, string, error) {
		uri, name, err := SplitQualified(qualified)
		if err != nil {
			return nil, "", PathError("open", qualified, err)
		}
		if uri != "" && uri != fsys.URI() {
			return nil, "", PathError("open", qualified,
				fmt.Errorf("%w: the path is on another file system than %s; give an Opener that knows it", fs.ErrInvalid, fsys.URI()))
		}
		if err := CheckName("open", "/", name); err != nil {
			return nil, "", err
		}
		return fsys, name, nil
	}
}

// Options of a [Storage]. The zero value is the documented default of every field.
type Options struct {
	// InlineThreshold is the largest state in bytes that is kept inline, in the handle, instead of in a file. 0 is
	// DefaultInlineThreshold, NeverInline switches it off; at most MaxInlineThreshold.
	InlineThreshold int

	// WriteBuffer is the size in bytes of a state stream's buffer. 0 is DefaultWriteBuffer, at most MaxWriteBuffer. A value below the threshold is
	// raised to it.
	WriteBuffer int

	// Durability of every file; the default is the strongest that the file system declares.
	Durability Durability

	// MinReplicas as in CreateOptions.
	MinReplicas int

	// NoJobDir leaves the <job-id> directory out, as Flink's execution.checkpointing.create-subdir=false does.
	NoJobDir bool

	// SavepointDir is the qualified directory for savepoints that are triggered without a target. "" is none.
	SavepointDir string

	// OwnerName is written into the claim for operators to read, for instance "host:pid".
	OwnerName string

	// Opener finds the file systems of savepoint targets and of handles on other file systems. The default knows the
	// storage's own only.
	Opener Opener

	// Logger receives what cannot be returned. nil is silent.
	Logger *slog.Logger

	// NewUUID makes the random names. The default makes random UUIDs of version 4.
	NewUUID func() (uuid.UUID, error)
}

// Validate reports all problems of the settings at once, each naming its field; the error is fs.ErrInvalid.
func (o Options) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: "+format, append([]any{fs.ErrInvalid}, args...)...))
	}
	if o.InlineThreshold < NeverInline {
		bad("Options.InlineThreshold is %d: it must be positive, 0 for the default, or NeverInline", o.InlineThreshold)
	}
	if o.InlineThreshold > MaxInlineThreshold {
		bad("Options.InlineThreshold is %d: at most %d", o.InlineThreshold, MaxInlineThreshold)
	}
	if o.WriteBuffer < 0 {
		bad("Options.WriteBuffer is %d: it must not be negative", o.WriteBuffer)
	}
	if o.WriteBuffer > MaxWriteBuffer {
		bad("Options.WriteBuffer is %d: at most %d", o.WriteBuffer, MaxWriteBuffer)
	}
	if o.MinReplicas < 0 {
		bad("Options.MinReplicas is %d: it must not be negative", o.MinReplicas)
	}
	if o.Durability > Synced {
		bad("Options.Durability is %d: no such durability", o.Durability)
	}
	if o.SavepointDir != "" {
		if _, _, err := SplitQualified(o.SavepointDir); err != nil {
			problems = append(problems, fmt.Errorf("Options.SavepointDir: %w", err))
		}
	}
	return errors.Join(problems...)
}

// withDefaults fills in the defaults for a storage on fsys.
func (o Options) withDefaults(fsys FileSystem) Options {
	switch o.InlineThreshold {
	case 0:
		o.InlineThreshold = DefaultInlineThreshold
	case NeverInline:
		o.InlineThreshold = 0
	}
	if o.WriteBuffer == 0 {
		o.WriteBuffer = DefaultWriteBuffer
	}
	o.WriteBuffer = max(o.WriteBuffer, o.InlineThreshold, 1)
	if o.Opener == nil {
		o.Opener = OnlyOn(fsys)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.NewUUID == nil {
		o.NewUUID = randomUUID
	}
	return o
}
