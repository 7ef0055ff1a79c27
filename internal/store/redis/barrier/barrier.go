// Package barrier lets the generators of a session begin their runs together, and passes on their records, through
// the Redis that they measure. Their clocks need not agree.
package barrier

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
)

var (
	// ErrRefused reports that a generator does not belong to the session: its settings differ, or another
	// generator has its index.
	ErrRefused = errors.New("refused by the session")
	// ErrLost reports that the session ended because a generator is missing. *Lost names it.
	ErrLost = errors.New("a generator is missing")
)

// Lost names a generator that did not come, died or was stopped.
type Lost struct {
	Index int
	Why   string
}

func (l *Lost) Error() string { return fmt.Sprintf("generator %d %s", l.Index, l.Why) }

// Is makes errors.Is(l, ErrLost) true.
func (l *Lost) Is(target error) bool { return target == ErrLost }

// refusal is an ErrRefused.
type refusal string

func (r refusal) Error() string        { return "--generators: " + string(r) }
func (r refusal) Is(target error) bool { return target == ErrRefused }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// Generators are the generators of a session, and what this one must have in common with the others.
type Generators struct {
	Session  string
	Number   int
	Index    int // of this one, from 0; negative: the first that is free
	Patience time.Duration
	Settings map[string]string // by the name of a flag
	Seed     int64             // of the session, unless another generator has come first
}

const (
	// life is how long a generator counts as alive after its last sign of life: longer than a busy machine keeps a
	// goroutine waiting.
	life     = 10 * time.Second
	beat     = 2 * time.Second // from one sign of life to the next
	polls    = 50 * time.Millisecond
	patience = 5 * time.Second // for one request
	// Limits of what the keys may hold.
	mostSettings = 1 << 20
	mostRecord   = 16 << 20
	mostState    = 128
)

// Lead is the time from the arrival of the last generator to the common start.
const Lead = 3 * time.Second

// Member is a generator that takes part in a session. Its goroutine ends with Leave or HandIn.
type Member struct {
	Index int
	Seed  int64 // of the session

	looking sync.Mutex // so that no look compares states that are older than those of the look before

	of      Generators
	meeting string // names the keys of this session among those of its name
	client  redis.UniversalClient
	mu      sync.Mutex // for what follows
	state   state
	nonces  []string // of the generators that have been there
	lost    *Lost
	end     context.CancelCauseFunc
	ended   context.Context // ends when a generator is lost
	stop    context.CancelFunc
	beating sync.WaitGroup
}

// state is the state that a generator publishes, in a key that expires.
type state struct {
	step  int // the barrier at which it has arrived
	phase string
	lost  int    // in phase gone: the generator that it misses
	nonce string // its part of the session's run ID
}

// wasStopped is the reason for the loss of a generator that reports its own end.
const wasStopped = "was stopped"

// Phases of a generator.
const (
	here = "here"
	gone = "gone" // it ends, because another generator is lost or it was stopped
	done = "done" // its record is complete
)

// last stands for the step of the last record.
const last = -1

func (s state) String() string {
	return fmt.Sprintf("%d %s %d %s", s.step, s.phase, s.lost, s.nonce)
}

func parseState(text string, generators int) (s state, err error) {
	if len(text) > mostState {
		return s, fmt.Errorf("the state has %d bytes, more than %d", len(text), mostState)
	}
	if _, err = fmt.Sscanf(text, "%d %s %d %s", &s.step, &s.phase, &s.lost, &s.nonce); err != nil ||
		s.String() != text || s.lost < 0 || s.lost >= generators ||
		!slices.Contains([]string{here, gone, done}, s.phase) {
		return s, fmt.Errorf("the text %q is not a state", untrusted.Printable(text))
	}
	return s, nil
}

// settingsKey returns the key by which generators find their session. All its keys are in one slot of a cluster.
func (g Generators) settingsKey() string { return "lockbench:generators:{" + g.Session + "}:settings" }

// key returns the name of another key, which no other session of that name has.
func (m *Member) key(parts ...any) string {
	name := "lockbench:generators:{" + m.of.Session + "}:" + m.meeting
	for _, part := range parts {
		name += fmt.Sprint(":", part)
	}
	return name
}

// agreement is what the first generator of a session sets for all. It is in a key that others may write: Meeting
// names nothing but the session's own keys.
type agreement struct {
	Meeting  string            `json:"meeting"`
	Seed     int64             `json:"seed"`
	Settings map[string]string `json:"settings"`
}

// unreachable wraps the error of a server that does not answer in store.ErrUnreachable.
func unreachable(err error) error {
	_, network := errors.AsType[net.Error](err) // also the end of a context's time
	if network || errors.Is(err, io.EOF) {
		return fmt.Errorf("Redis %w: %w", store.ErrUnreachable, err)
	}
	return err
}

// Join takes part in a session, which begins with its first generator. The error wraps ErrRefused if this one does not
// fit, else store.ErrUnreachable or store.ErrConfig. It waits for the end of an earlier session of that name.
func Join(ctx context.Context, client redis.UniversalClient, of Generators) (*Member, error) {
	m := &Member{of: of, client: client, nonces: make([]string, of.Number)}
	for deadline := time.Now().Add(2 * life); ; pause.Plain(ctx.Done(), polls) {
		ending, err := m.register(ctx)
		if err == nil {
			break
		}
		if ending && time.Now().Before(deadline) && ctx.Err() == nil {
			continue
		}
		if err = unreachable(err); ctx.Err() == nil && !errors.Is(err, ErrRefused) &&
			!errors.Is(err, store.ErrUnreachable) {
			err = fmt.Errorf("%w: %w", store.ErrConfig, err)
		}
		return nil, err
	}
	m.ended, m.end = context.WithCancelCause(context.WithoutCancel(ctx))
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	m.beating.Go(func() { m.beat(beating) })
	return m, nil
}

// register claims a slot in the session. ending is true if the error is due to an earlier session that is about to
// end.
func (m *Member) register(ctx context.Context) (ending bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	mine := agreement{store.NewRunID(), m.of.Seed, m.of.Settings}
	text, err := json.Marshal(mine)
	if err != nil {
		return false, err
	}
	if err := m.client.SetNX(ctx, m.of.settingsKey(), text, life).Err(); err != nil {
		return false, fmt.Errorf("begin a session of generators: %w", err)
	}
	text, err = m.read(ctx, m.of.settingsKey(), mostSettings)
	if err != nil {
		return false, err
	}
	var ours agreement
	if err := json.Unmarshal(text, &ours); err != nil || !store.IsRunID(ours.Meeting) {
		return false, fmt.Errorf("%s holds no settings of a session", m.of.settingsKey())
	}
	m.meeting, m.Seed = ours.Meeting, ours.Seed
	others, err := m.states(ctx)
	if err != nil {
		return false, err
	}
	ended := func(s *state) bool { return s == nil || s.phase != here }
	ending = !slices.ContainsFunc(others, func(s *state) bool { return !ended(s) }) ||
		slices.ContainsFunc(others, func(s *state) bool { return s != nil && ended(s) })
	if wrong := differences(ours.Settings, m.of.Settings); wrong != nil {
		return ending, wrong
	}
	if slices.ContainsFunc(others, func(s *state) bool { return s != nil && (s.step > 1 || s.phase != here) }) {
		return ending, refuse("session %s has begun without this generator", m.of.Session)
	}
	m.state = state{phase: here, nonce: rand.Text()}
	places := []int{m.of.Index}
	if m.of.Index < 0 {
		places = nil
		for i := range m.of.Number {
			places = append(places, i)
		}
	}
	for _, i := range places {
		free, err := m.client.SetNX(ctx, m.key(i), m.state.String(), life).Result()
		if err != nil {
			return false, err
		}
		if free {
			m.Index, m.nonces[i] = i, m.state.nonce
			return false, nil
		}
	}
	if m.of.Index < 0 {
		return ending, refuse("session %s already has all its %d generators", m.of.Session, m.of.Number)
	}
	return ending, refuse("session %s already has another generator %d", m.of.Session, m.of.Index)
}

// differences names the settings that differ.
func differences(theirs, mine map[string]string) error {
	var all []error
	both := maps.Clone(theirs)
	maps.Copy(both, mine)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if theirs[name] != mine[name] {
			all = append(all, refuse("%s is %s here, and %s for the first generator", untrusted.Printable(name),
				cmp.Or(mine[name], "not given"), cmp.Or(untrusted.Printable(theirs[name]), "not given")))
		}
	}
	return errors.Join(all...)
}

// errDamaged reports that a key does not hold what a generator wrote.
var errDamaged = errors.New("the value is damaged")

// read reads a key of a limited size.
func (m *Member) read(ctx context.Context, key string, most int64) ([]byte, error) {
	text, err := m.client.GetRange(ctx, key, 0, most).Bytes()
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return nil, fmt.Errorf("read %s: %w: %w", key, errDamaged, err)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", key, err)
	case int64(len(text)) > most:
		return nil, fmt.Errorf("read %s: %w: the value has more than %d bytes", key, errDamaged, most)
	case len(text) == 0:
		return nil, fmt.Errorf("read %s: %w: the key is missing", key, errDamaged)
	}
	return text, nil
}

// states returns the states that the generators publish; nil for missing generators.
func (m *Member) states(ctx context.Context) ([]*state, error) {
	all := make([]*state, m.of.Number)
	texts, err := m.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range all {
			p.GetRange(ctx, m.key(i), 0, mostState) // others may have written more
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the generators: %w", err)
	}
	for i, text := range texts {
		text := text.(*redis.StringCmd).Val()
		if text == "" {
			continue
		}
		s, err := parseState(text, m.of.Number)
		if err != nil {
			return nil, fmt.Errorf("%s does not hold a generator's state: %w", m.key(i), err)
		}
		all[i] = &s
	}
	return all, nil
}

// tell publishes this generator's state.
func (m *Member) tell(ctx context.Context, how func(*state), expiry time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	how(&m.state)
	there, err := m.client.SetXX(ctx, m.key(m.Index), m.state.String(), expiry).Result()
	if err == nil && !there {
		return &Lost{m.Index, "sent the others no sign of life for " + life.String()}
	}
	return err
}

// beat sends signs of life and looks for the signs of life of the other generators.
func (m *Member) beat(ctx context.Context) {
	for ; ctx.Err() == nil; pause.Plain(ctx.Done(), beat) {
		within, cancel := context.WithTimeout(ctx, patience)
		err := m.tell(within, func(*state) {}, life)
		if err == nil {
			_, err = m.look(within)
		}
		_ = m.client.PExpire(within, m.of.settingsKey(), life).Err() // a later one fails too
		cancel()
		if lost, is := errors.AsType[*Lost](err); is {
			m.miss(lost)
		} // if the server does not answer, the run finds out
	}
}

// miss ends the session of this generator: Context ends.
func (m *Member) miss(lost *Lost) {
	m.mu.Lock()
	if m.lost == nil {
		m.lost = lost
		m.state.phase, m.state.lost = gone, lost.Index
	}
	lost = m.lost
	m.mu.Unlock()
	m.end(lost)
}

// look returns the generators' states, or a *Lost for a generator that has disappeared.
func (m *Member) look(ctx context.Context) ([]*state, error) {
	m.looking.Lock()
	defer m.looking.Unlock()
	all, err := m.states(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, s := range all {
		switch {
		case i == m.Index:
		case s == nil && m.nonces[i] != "":
			return nil, &Lost{i, "died: it has sent the others no sign of life for " + life.String()}
		case s == nil:
		case s.phase == gone && s.lost == i:
			return nil, &Lost{i, wasStopped}
		case s.phase == gone && s.lost == m.Index:
			return nil, &Lost{m.Index, "sent the others no sign of life for " + life.String()}
		case s.phase == gone:
			return nil, &Lost{s.lost, "is missing according to generator " + strconv.Itoa(i)}
		case m.nonces[i] == "":
			m.nonces[i] = s.nonce
		case m.nonces[i] != s.nonce:
			return nil, &Lost{i, "was replaced by another generator"}
		}
	}
	return all, nil
}

// Context returns a context that ends also when a generator is lost; the cause is a *Lost.
func (m *Member) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(m.ended, func() { cancel(context.Cause(m.ended)) })
	return both, func() { stop(); cancel(nil) }
}

// Lost returns the generator that was lost; nil if none was.
func (m *Member) Lost() *Lost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// Start is the instant at which all generators begin a run, by the server's clock and by that of this process.
type Start struct {
	Server, Here time.Time
	// Uncertainty is half of the round trip with which this process learnt the server's time.
	Uncertainty time.Duration
}

// Agree waits until all generators have joined, and returns the run ID of their locks. Each contributes to the ID, so
// that no key in Redis decides whose locks a session uses.
func (m *Member) Agree(ctx context.Context) (id string, err error) {
	ctx, cancel := m.Context(ctx)
	defer cancel()
	defer func() { err = m.failed(ctx, err) }()
	if err := m.await(ctx, 0); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return store.SharedRunID(m.nonces), nil
}

// failed ends the session if the error of a barrier is a *Lost, and returns the cause of the error.
func (m *Member) failed(ctx context.Context, err error) error {
	if lost, is := errors.AsType[*Lost](err); is {
		m.miss(lost)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return unreachable(err)
}

// await waits until all generators have come to a barrier; all join at 0. The error is a *Lost for one that did not.
func (m *Member) await(ctx context.Context, step int) error {
	for deadline := time.Now().Add(m.of.Patience); ; pause.Plain(ctx.Done(), polls) {
		all, err := m.look(ctx)
		if err != nil {
			return err
		}
		late := slices.IndexFunc(all, func(s *state) bool { return s == nil || s.step < step })
		switch {
		case late < 0:
			return nil
		case all[late] != nil && all[late].phase == done:
			return &Lost{late, "ended before the others"}
		case time.Now().After(deadline):
			return &Lost{late, "did not join within " + m.of.Patience.String()}
		}
	}
}

// Meet waits until all generators have come to the next barrier, and returns the common start; to generator 0, also
// what each of them recorded since the last barrier.
func (m *Member) Meet(ctx context.Context, record []byte) (start Start, records [][]byte, err error) {
	ctx, cancel := m.Context(ctx)
	defer cancel()
	defer func() { err = m.failed(ctx, err) }()
	m.mu.Lock()
	step := m.state.step + 1
	m.mu.Unlock()
	if err := m.record(ctx, step, record); err != nil {
		return start, nil, err
	}
	if err := m.tell(ctx, func(s *state) { s.step = step }, life); err != nil {
		return start, nil, err
	}
	if err := m.await(ctx, step); err != nil {
		return start, nil, err
	}
	if m.Index == 0 {
		if records, err = m.records(ctx, step, make([]bool, m.of.Number)); err != nil {
			return start, nil, err
		}
	}
	// All have read what belongs to the barrier before.
	if err := m.client.Del(ctx, m.key("record", step-1, m.Index), m.key("start", step-1)).Err(); err != nil {
		return start, nil, err
	}
	start, err = m.start(ctx, step)
	return start, records, err
}

// start returns the start after a barrier, which the first generator that has seen all of them sets.
func (m *Member) start(ctx context.Context, step int) (start Start, err error) {
	here, server, trip, err := m.now(ctx)
	if err != nil {
		return start, err
	}
	key := m.key("start", step)
	at := server.Add(Lead).UnixMicro()
	if err := m.client.SetNX(ctx, key, at, 2*life).Err(); err != nil {
		return start, err
	}
	text, err := m.read(ctx, key, mostState)
	if err != nil {
		return start, err
	}
	if at, err = strconv.ParseInt(string(text), 10, 64); err != nil {
		return start, fmt.Errorf("%s does not hold a time: %w", key, err)
	}
	start.Server, start.Uncertainty = time.UnixMicro(at).UTC(), trip/2
	left := start.Server.Sub(server)
	if left > 2*Lead || left < -m.of.Patience {
		return start, fmt.Errorf("%s holds a time %v from now, which is not a possible start", key, left)
	}
	start.Here = here.Add(left)
	return start, nil
}

// now returns an instant by the clock of this process and by the server's: that of the shortest of several round trips,
// in the middle of which the server answered.
func (m *Member) now(ctx context.Context) (here, server time.Time, trip time.Duration, err error) {
	client := m.client
	if cluster, is := client.(*redis.ClusterClient); is { // all generators ask the same server
		if client, err = cluster.MasterForKey(ctx, m.of.settingsKey()); err != nil {
			return here, server, trip, fmt.Errorf("look for the server of the session: %w", err)
		}
	}
	for i, begun := 0, time.Now(); i < 5 || i < 20 && time.Since(begun) < Lead/10; i++ { // well within Lead
		before := time.Now()
		at, err := client.Time(ctx).Result()
		if err != nil {
			return here, server, trip, fmt.Errorf("ask for the server's time: %w", err)
		}
		if took := time.Since(before); i == 0 || took < trip {
			here, server, trip = before.Add(took/2), at, took
		}
	}
	return here, server, trip, nil
}

// Uncertainty returns how exactly this process knew the server's clock from a start until now: if its own clock went
// faster or slower in the meantime, the difference counts.
func (m *Member) Uncertainty(ctx context.Context, start Start) (time.Duration, error) {
	here, server, trip, err := m.now(ctx)
	if err != nil {
		return 0, err
	}
	drift := server.Sub(start.Server) - here.Sub(start.Here)
	return max(start.Uncertainty, drift.Abs()+trip/2), nil
}
