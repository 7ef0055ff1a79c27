package barrier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
)

// At the end of the session each generator hands in its record. Generator 0 collects the records, writes the report and
// deletes the session's keys.

// record stores this generator's record, which must not be empty, for generator 0.
func (m *Member) record(ctx context.Context, step int, record []byte) error {
	if len(record) > mostRecord {
		return fmt.Errorf("store the record: a record must have at most %[2]d bytes, not %[1]d", len(record), mostRecord)
	}
	return m.client.Set(ctx, m.key("record", step, m.Index), record, m.of.Patience+life).Err()
}

// records returns the records of a step. The entry of a generator is nil if without is true for the generator, or if
// the key of the record does not hold a record.
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

// HandIn stores this generator's last record. For generator 0, which writes the report, it returns the records of all
// generators that were not lost, and deletes the session's keys. For the other generators it returns nil. If this
// generator itself was lost, HandIn stores nothing.
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
	err = m.publishState(ctx, func(s *state) { s.phase = done }, m.of.Patience+life)
	if self, is := errors.AsType[*Lost](err); is {
		m.miss(self)
	}
	if err != nil || m.Index > 0 {
		return nil, err
	}
	absent, stopped := make([]bool, m.of.Number), make([]bool, m.of.Number)
	for deadline := time.Now().Add(m.of.Patience); ; pause.Plain(ctx.Done(), polls) {
		// While the key with the settings exists, no other session with the same name begins. The key must therefore not
		// expire before clear deletes it.
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
			stopped[i] = stopped[i] || s != nil && away(i) // remember it: its own report expires
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
			m.miss(&Lost{i, "died: it did not hand in its record"})
		}
	}
	return records, m.clear(ctx, step)
}

// clear deletes the session's keys after its last barrier. The keys of a generator that is still ending expire.
func (m *Member) clear(ctx context.Context, step int) error {
	keys := []string{m.of.settingsKey(), m.key("start", step)}
	for i := range m.of.Number {
		keys = append(keys, m.key(i), m.key("record", step-1, i), m.key("record", step, i),
			m.key("record", last, i))
	}
	return m.client.Del(ctx, keys...).Err()
}

// Leave ends this generator's part in the session, and stores no record. The other generators end too, at the latest
// when the key of this generator's state has expired. All keys of this generator expire.
func (m *Member) Leave(ctx context.Context) {
	m.stop()
	m.beating.Wait()
	m.miss(&Lost{m.Index, wasStopped}) // has no effect if another generator is lost already
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	step := 0
	_ = m.publishState(ctx, func(s *state) { step = s.step }, life)
	_ = m.client.Del(ctx, m.key("record", step, m.Index)).Err()
}
