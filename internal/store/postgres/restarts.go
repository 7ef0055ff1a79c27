package postgres

import (
	"context"
	"sync"
	"time"
)

// restarts continues the log's position over restarts of our own server, which may lose the log.
type restarts struct {
	mu       sync.Mutex
	wal      int64  // bytes that the log had before the restarts, less where it began after them
	position *int64 // of the log before the restart under way; nil if unknown
	gap      bool   // the log's position before a restart is unknown
}

// brief limits what may delay a fault.
const brief = time.Second

// walQuery returns the position of the log's end in bytes; NULL on a standby, which has none.
const walQuery = `CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint END`

func (s *server) position(ctx context.Context) *int64 {
	var wal *int64
	if s.observer.QueryRow(ctx, "SELECT "+walQuery).Scan(&wal) != nil {
		return nil
	}
	return wal
}

// ending notes the position of a server of ours that is about to be killed.
func (s *server) ending(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, brief) // a paused server does not answer
	defer cancel()
	wal := s.position(ctx)
	r := &s.restarts
	r.mu.Lock()
	defer r.mu.Unlock()
	r.position = wal
}

// began notes where the log goes on after a restart.
func (s *server) began(ctx context.Context) {
	s.observer.Reset() // its connections have ended with the server
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	wal := s.position(ctx)
	r := &s.restarts
	r.mu.Lock()
	defer r.mu.Unlock()
	if wal == nil || r.position == nil {
		r.gap = true
		return
	}
	r.wal += *r.position - *wal
}

// continued returns the position as if there had been no restart; nil is unknown.
func (r *restarts) continued(wal *int64) *int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wal == nil || r.gap {
		return nil
	}
	sum := *wal + r.wal
	return &sum
}
