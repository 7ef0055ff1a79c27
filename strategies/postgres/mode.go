package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// number is the number of a key's advisory lock; see postgres.md.
func number(key string) int64 {
	sum := sha256.Sum256([]byte(key))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// statements are what a mode sends to the server.
type statements struct {
	transaction bool   // a transaction holds the lock
	lock, try   string // with one argument
	token       string // draws it in the same round trip; "" for none
	unlock      string // with one argument, unless it ends the transaction
	forget      string // frees all that the session may hold
	silence     string // sets how long a holder may be silent, in ms
}

const (
	begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	// unlockAll also frees a lock that was granted to a statement that was then cancelled: a
	// session's lock outlives its statement.
	unlockAll = "SELECT pg_advisory_unlock_all()"
)

// names of what is in the schema.
const (
	tableName    = "lockbench_lock"
	sequenceName = "lockbench_fence"
)

func (o Options) statements(schema string) statements {
	inTransaction := statements{
		transaction: true, unlock: "COMMIT", forget: "ROLLBACK",
		silence: "SET LOCAL idle_in_transaction_session_timeout = %d",
	}
	switch o.Mode {
	case Xact:
		s := inTransaction
		s.lock, s.try = "SELECT pg_advisory_xact_lock($1)", "SELECT pg_try_advisory_xact_lock($1)"
		return s
	case Row:
		s := inTransaction
		s.lock = "SELECT true FROM " + within(schema, tableName) + " WHERE key = $1 FOR UPDATE"
		s.try = s.lock + " SKIP LOCKED"
		return s
	}
	s := statements{
		lock: "SELECT pg_advisory_lock($1)", try: "SELECT pg_try_advisory_lock($1)",
		unlock: "SELECT pg_advisory_unlock($1)", forget: unlockAll,
		silence: "SET idle_session_timeout = %d",
	}
	if o.Fence {
		next := "nextval(" + literal(within(schema, sequenceName)) + ")"
		s.token = "SELECT " + next
		s.try = "SELECT CASE WHEN pg_try_advisory_lock($1) THEN " + next + " END"
	}
	return s
}

// silent is the statement that lets a holder be silent for so long from now on.
func (s statements) silent(ttl time.Duration) string {
	return fmt.Sprintf(s.silence, ttl.Milliseconds())
}

// within is a name in a schema; without a schema search_path decides.
func within(schema, name string) string {
	if schema == "" {
		return pgx.Identifier{name}.Sanitize()
	}
	return pgx.Identifier{schema, name}.Sanitize()
}
