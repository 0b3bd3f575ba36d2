package core

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"
)

// LocationReference tells a task where a checkpoint's state goes. It is what a coordinator sends with a trigger. Empty
// means the default: derived from the storage's own settings and the checkpoint id. Otherwise it is Flink's encoding:
//
//	+----+----+----+----+------------------------+
//	| 05 | 5F | 3F | 18 | qualified path, UTF-8  |
//	+----+----+----+----+------------------------+
//
// (AbstractFsCheckpointStorageAccess.encodePathAsReference.)
type LocationReference []byte

var referenceMagic = []byte{0x05, 0x5f, 0x3f, 0x18}

// EncodeReference encodes a qualified directory.
func EncodeReference(qualified string) LocationReference {
	return append(bytes.Clone(referenceMagic), qualified...)
}

// IsDefault reports whether the reference is the default one.
func (r LocationReference) IsDefault() bool { return len(r) == 0 }

// Decode returns the qualified path of a reference that is not the default; the error is fs.ErrInvalid.
func (r LocationReference) Decode() (string, error) {
	var problem error
	switch {
	case r.IsDefault():
		problem = errors.New("the default reference holds no path")
	case len(r) <= len(referenceMagic):
		problem = fmt.Errorf("%d bytes are too short", len(r))
	case !bytes.HasPrefix(r, referenceMagic):
		problem = errors.New("it does not begin with 055f3f18")
	case !utf8.Valid(r):
		problem = errors.New("its path is not UTF-8")
	default:
		qualified := string(r[len(referenceMagic):])
		_, _, problem = SplitQualified(qualified)
		if problem == nil {
			return qualified, nil
		}
	}
	return "", fmt.Errorf("%w: location reference: %w", fs.ErrInvalid, problem)
}

// String is "(default)" or the bytes in hex.
func (r LocationReference) String() string {
	if r.IsDefault() {
		return "(default)"
	}
	return hex.EncodeToString(r)
}
