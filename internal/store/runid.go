package store

import (
	"crypto/rand"
	"encoding/hex"
)

// NewRunID is a RunID that is unlikely to be anybody else's.
func NewRunID() string {
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails, by its documentation
	return hex.EncodeToString(id)
}
