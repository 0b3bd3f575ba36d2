package core

import (
	"crypto/rand"

	"github.com/google/uuid"
)

// randomUUID is uuid.NewRandom without its allocation, which every inline state would pay for.
func randomUUID() (uuid.UUID, error) {
	var id uuid.UUID
	_, err := rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return id, err
}
