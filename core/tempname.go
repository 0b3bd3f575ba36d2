package core

import "github.com/google/uuid"

// NewMetadataTempName returns a name, which nobody else has, for a metadata file that is still being written. It is of the form that
// Flink's have: one that a crash leaves over is garbage for every sweep.
func NewMetadataTempName() (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", err
	}
	return inProgressPrefix + id.String(), nil
}
