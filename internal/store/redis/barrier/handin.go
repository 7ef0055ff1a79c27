package barrier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
)

// Each generator hands its record in at the end of the session, for generator 0, which writes the report and deletes
// the session's keys.

// record passes on this generator's record, which is not empty.
func (m *Member) record(ctx context.Context, step int, record []byte) error {
	if len(record) > mostRecord {
		return fmt.Errorf("pass on the record: it must have at most %[2]d bytes, not %[1]d", len(record), mostRecord)
	}
	return m.client.Set(ctx, m.key("record", step, m.Index), record, m.of.Patience+life).Err()
}

// records returns the records of a step; nil for a generator whose key does not hold one: the others have theirs.
func (m *Member) records(ctx context.Context, step int, without []bool) ([][]byte, error) {
	all := make([][]byte, m.of.Number)
	for i := range all {
		if without[i] {
			continue
		}
		record, err := m.read(ctx, m.key("record", step, i), mostRecord)
		if err != nil && !errors.Is(err, errDamaged) {
			return nil, err
		}
		all[i] = record
	}
	return all, nil
}

// HandIn passes on this generator's last record. Generator 0, which reports, gets those of all that were not lost, and
// deletes the session's keys; the others get nil. A generator that was lost itself hands in nothing.
func (m *Member) HandIn(ctx context.Context, record []byte) (records [][]byte, err error) {
	defer func() { err = unreachable(err) }()
	m.stop()
	m.beating.Wait()
	m.mu.Lock()
	step, lost := m.state.step, m.lost
	m.mu.Unlock()
	if lost != nil && lost.Index == m.Index {
		m.Leave(ctx)
		return nil, nil
	}
	if err := m.record(ctx, last, record); err != nil {
		return nil, err
	}
	err = m.tell(ctx, func(s *state) { s.phase = done }, m.of.Patience+life)
	if self, is := errors.AsType[*Lost](err); is {
		m.miss(self)
	}
	if err != nil || m.Index > 0 {
		return nil, err
	}
	absent, stopped := make([]bool, m.of.Number), make([]bool, m.of.Number)
	for deadline := time.Now().Add(m.of.Patience); ; pause.Plain(ctx.Done(), polls) {
		// As long as this session has keys to delete, no other begins.
		_ = m.client.PExpire(ctx, m.of.settingsKey(), life).Err()
		all, err := m.states(ctx)
		if err != nil {
			return nil, err
		}
		away := func(i int) bool { return all[i] == nil || all[i].phase == gone && all[i].lost == i }
		if away(0) { // as after FLUSHALL
			return nil, &Lost{0, "was replaced by another generator at the end"}
		}
		ready := true
		for i, s := range all {
			absent[i] = s == nil || s.phase != done
			stopped[i] = stopped[i] || s != nil && away(i) // what it says of itself expires
			ready = ready && (!absent[i] || away(i))
		}
		if ready || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
	}
	if records, err = m.records(ctx, last, absent); err != nil {
		return nil, err
	}
	for i := range records {
		switch {
		case !absent[i] || lost != nil && lost.Index != i:
		case stopped[i]:
			m.miss(&Lost{i, wasStopped})
		default:
			m.miss(&Lost{i, "died: it did not pass on its record"})
		}
	}
	return records, m.clear(ctx, step)
}

// clear deletes the session's keys after its last barrier. Those of a generator that still ends expire.
func (m *Member) clear(ctx context.Context, step int) error {
	keys := []string{m.of.settingsKey(), m.key("start", step)}
	for i := range m.of.Number {
		keys = append(keys, m.key(i), m.key("record", step-1, i), m.key("record", step, i),
			m.key("record", last, i))
	}
	return m.client.Del(ctx, keys...).Err()
}

// Leave ends this generator's part without a record. The other generators end too, at the latest when this one has sent
// no sign of life for too long. Its keys expire.
func (m *Member) Leave(ctx context.Context) {
	m.stop()
	m.beating.Wait()
	m.miss(&Lost{m.Index, wasStopped}) // unless another is lost
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	step := 0
	_ = m.tell(ctx, func(s *state) { step = s.step }, life)
	_ = m.client.Del(ctx, m.key("record", step, m.Index)).Err()
}
