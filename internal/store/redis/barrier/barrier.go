// Package barrier lets the generators of a session begin their runs at the same time, and collects their records,
// through the Redis that they measure. The clocks of the generators need not agree.
package barrier

// A session has these keys: its settings, which the first generator writes; the state of each generator, which expires
// unless heartbeats renew it; and for each barrier a common start and the records (see handin.go). A generator calls
// Join, Agree, Meet before each run, and HandIn or Leave. Generators send one another no messages, but poll the states
// until all have reached a barrier or one is lost.
//
// Other programs may write to the same Redis, so every value that is read has a limit and is checked.

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
	// ErrLost reports that the session ended because a generator is missing. The *Lost in its chain identifies that
	// generator.
	ErrLost = errors.New("a generator is missing")
)

// Lost identifies a generator that did not join, died or was stopped.
type Lost struct {
	Index int
	Why   string
}

func (l *Lost) Error() string { return fmt.Sprintf("generator %d %s", l.Index, l.Why) }

// Is makes errors.Is(l, ErrLost) true.
func (l *Lost) Is(target error) bool { return target == ErrLost }

// refusal is an error that matches ErrRefused.
type refusal string

func (r refusal) Error() string        { return "--generators: " + string(r) }
func (r refusal) Is(target error) bool { return target == ErrRefused }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// Generators describes the generators of a session for one of them: its own index, and the values that all generators
// must share.
type Generators struct {
	Session  string
	Number   int
	Index    int // of this generator, from 0; negative means the first free index
	Patience time.Duration
	Settings map[string]string // by the name of a flag
	Seed     int64             // proposed for the session; the first generator's counts
}

const (
	// life is how long a generator counts as alive after its last heartbeat. It is longer than any delay of a goroutine on
	// a busy machine.
	life     = 10 * time.Second
	beat     = 2 * time.Second // from one heartbeat to the next
	polls    = 50 * time.Millisecond
	patience = 5 * time.Second // for one request
	// The following constants limit the size of values in bytes, because other programs may write to the keys.
	mostSettings = 1 << 20
	mostRecord   = 16 << 20
	mostState    = 128
)

// Lead is the time from the arrival of the last generator to the common start.
const Lead = 3 * time.Second

// Member is a generator that takes part in a session. The goroutine that sends its heartbeats ends with Leave or
// HandIn.
type Member struct {
	Index int
	Seed  int64 // of the session

	looking sync.Mutex // serialises readStates, so that no call compares states older than those of the previous call

	of      Generators
	meeting string // distinguishes the keys of this session from those of others with its name
	client  redis.UniversalClient
	mu      sync.Mutex // guards the fields below
	state   state
	nonces  []string // of the generators seen so far, by index
	lost    *Lost
	end     context.CancelCauseFunc
	ended   context.Context // ends when a generator is lost
	stop    context.CancelFunc
	beating sync.WaitGroup
}

// state is what a generator publishes about itself. Its key expires unless the generator's heartbeats renew it.
type state struct {
	step  int // the last barrier that it has reached
	phase string
	lost  int    // in phase gone: the index of the generator that it reports as lost
	nonce string // its contribution to the session's run ID
}

// wasStopped is the reason in Lost if the generator itself reported that it was stopped.
const wasStopped = "was stopped"

// These are the phases of a generator.
const (
	here = "here"
	gone = "gone" // it ends, because another generator is lost or because it was stopped
	done = "done" // its record is complete
)

// last replaces the step in the key of a generator's last record.
const last = -1

func (s state) String() string {
	return fmt.Sprintf("%d %s %d %s", s.step, s.phase, s.lost, s.nonce)
}

func parseState(text string, generators int) (s state, err error) {
	if len(text) > mostState {
		return s, fmt.Errorf("the state has %d bytes, more than the %d that are allowed", len(text), mostState)
	}
	if _, err = fmt.Sscanf(text, "%d %s %d %s", &s.step, &s.phase, &s.lost, &s.nonce); err != nil ||
		s.String() != text || s.lost < 0 || s.lost >= generators ||
		!slices.Contains([]string{here, gone, done}, s.phase) {
		return s, fmt.Errorf("%q is not the state of a generator", untrusted.Printable(text))
	}
	return s, nil
}

// settingsKey returns the key under which generators find the settings of their session. The hash tag puts all keys of
// the session in one slot of a cluster.
func (g Generators) settingsKey() string { return "lockbench:generators:{" + g.Session + "}:settings" }

// key returns the name of the session's key that the parts identify. No other session with the same name uses this key.
func (m *Member) key(parts ...any) string {
	name := "lockbench:generators:{" + m.of.Session + "}:" + m.meeting
	for _, part := range parts {
		name += fmt.Sprint(":", part)
	}
	return name
}

// agreement holds the settings that the first generator of a session writes for all generators. Other programs may be
// able to write to the same key, so Meeting is used only in the names of the session's keys.
type agreement struct {
	Meeting  string            `json:"meeting"`
	Seed     int64             `json:"seed"`
	Settings map[string]string `json:"settings"`
}

// unreachable adds store.ErrUnreachable to the error of a server that does not reply.
func unreachable(err error) error {
	_, network := errors.AsType[net.Error](err) // a context's deadline is a net.Error too
	if network || errors.Is(err, io.EOF) {
		return fmt.Errorf("Redis %w: %w", store.ErrUnreachable, err)
	}
	return err
}

// Join makes this generator a member of a session. The first generator that joins opens the session. Join waits for the
// end of an earlier session with the same name. If this generator does not fit the session, the error wraps ErrRefused.
// Any other error wraps store.ErrUnreachable or store.ErrConfig.
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

// register claims this generator's index in the session. If register fails, ending reports whether the cause may be an
// earlier session of the same name that is about to end.
func (m *Member) register(ctx context.Context) (ending bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	mine := agreement{store.NewRunID(), m.of.Seed, m.of.Settings}
	text, err := json.Marshal(mine)
	if err != nil {
		return false, err
	}
	if err := m.client.SetNX(ctx, m.of.settingsKey(), text, life).Err(); err != nil {
		return false, fmt.Errorf("open a session of generators: %w", err)
	}
	text, err = m.read(ctx, m.of.settingsKey(), mostSettings)
	if err != nil {
		return false, err
	}
	var ours agreement
	if err := json.Unmarshal(text, &ours); err != nil || !store.IsRunID(ours.Meeting) {
		return false, fmt.Errorf("%s does not contain the settings of a session", m.of.settingsKey())
	}
	m.meeting, m.Seed = ours.Meeting, ours.Seed
	others, err := m.states(ctx)
	if err != nil {
		return false, err
	}
	ended := func(s *state) bool { return s == nil || s.phase != here }
	// In a session that is about to end, no generator is alive, or at least one has already ended.
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
		// SET NX gives each index to only one generator.
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

// differences returns an error that names each setting that differs; nil if all are equal.
func differences(theirs, mine map[string]string) error {
	var all []error
	both := maps.Clone(theirs)
	maps.Copy(both, mine)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if theirs[name] != mine[name] {
			all = append(all, refuse("%s is %s here, but %s for the first generator", untrusted.Printable(name),
				cmp.Or(mine[name], "not given"), cmp.Or(untrusted.Printable(theirs[name]), "not given")))
		}
	}
	return errors.Join(all...)
}

// errDamaged reports that a key does not hold what a generator wrote to it.
var errDamaged = errors.New("the value is damaged")

// read reads a key. The error wraps errDamaged if the key is missing, does not hold a string, or holds a value of more
// than `most` bytes.
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
			p.GetRange(ctx, m.key(i), 0, mostState) // another program may have written a longer value
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the states of the generators: %w", err)
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

// publishState changes this generator's state and publishes it. It returns a *Lost if the previous state has expired.
func (m *Member) publishState(ctx context.Context, how func(*state), expiry time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	how(&m.state)
	// SET XX fails if the key has expired. The other generators then already count this generator as lost.
	there, err := m.client.SetXX(ctx, m.key(m.Index), m.state.String(), expiry).Result()
	if err == nil && !there {
		return &Lost{m.Index, "sent no heartbeat for " + life.String()}
	}
	return err
}

// beat sends heartbeats and checks the heartbeats of the other generators.
func (m *Member) beat(ctx context.Context) {
	for ; ctx.Err() == nil; pause.Plain(ctx.Done(), beat) {
		within, cancel := context.WithTimeout(ctx, patience)
		err := m.publishState(within, func(*state) {}, life)
		if err == nil {
			_, err = m.readStates(within)
		}
		_ = m.client.PExpire(within, m.of.settingsKey(), life).Err() // if the server is gone, the next publishState fails too
		cancel()
		if lost, is := errors.AsType[*Lost](err); is {
			m.miss(lost)
		} // other errors mean that the server does not answer, which the run detects itself
	}
}

// miss records a lost generator, unless an earlier one is already recorded, and cancels the contexts that Context has
// returned.
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

// readStates returns the generators' states. The error is a *Lost if a generator has disappeared.
func (m *Member) readStates(ctx context.Context) ([]*state, error) {
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
			return nil, &Lost{i, "died: it has sent no heartbeat for " + life.String()}
		case s == nil:
		case s.phase == gone && s.lost == i:
			return nil, &Lost{i, wasStopped}
		case s.phase == gone && s.lost == m.Index:
			return nil, &Lost{m.Index, "sent no heartbeat for " + life.String()}
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

// Context returns a copy of ctx that is also cancelled when a generator is lost. The cause is then a *Lost.
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

// Start is the instant at which all generators begin a run, by the server's clock and by the clock of this process.
type Start struct {
	Server, Here time.Time
	// Uncertainty is the largest error of Here. It is half of the round trip with which this process read the server's
	// clock.
	Uncertainty time.Duration
}

// Agree waits until all generators have joined, and returns the run ID of their locks. Every generator contributes to
// the ID, so a forged key in Redis cannot make a session use another run's locks.
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

// failed handles err, the error of a barrier. If err is a *Lost, failed ends the session. It returns the cause of ctx
// if ctx is done, and otherwise err.
func (m *Member) failed(ctx context.Context, err error) error {
	if lost, is := errors.AsType[*Lost](err); is {
		m.miss(lost)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return unreachable(err)
}

// await waits until all generators have reached a barrier. A generator reaches barrier 0 by joining the session. If a
// generator is lost first, the error is a *Lost.
func (m *Member) await(ctx context.Context, step int) error {
	for deadline := time.Now().Add(m.of.Patience); ; pause.Plain(ctx.Done(), polls) {
		all, err := m.readStates(ctx)
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

// Meet waits until all generators have reached the next barrier, and returns their common start. For generator 0 it
// also returns the records that the generators passed to their calls of Meet for this barrier.
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
	if err := m.publishState(ctx, func(s *state) { s.step = step }, life); err != nil {
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
	// All generators have read the keys of the previous barrier, so this generator can delete the keys that it wrote for
	// that barrier.
	if err := m.client.Del(ctx, m.key("record", step-1, m.Index), m.key("start", step-1)).Err(); err != nil {
		return start, nil, err
	}
	start, err = m.start(ctx, step)
	return start, records, err
}

// start returns the common start after a barrier. The first generator that sees all others at the barrier sets the
// common start.
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
	// A forged start must not make a generator wait for long, or begin long after the others.
	if left > 2*Lead || left < -m.of.Patience {
		return start, fmt.Errorf("%s holds a start time %v from now, which no generator would set", key, left)
	}
	start.Here = here.Add(left)
	return start, nil
}

// now returns one instant by the clock of this process and by the server's clock. It uses the shortest of several round
// trips and assumes that the server read its clock in the middle of that round trip.
func (m *Member) now(ctx context.Context) (here, server time.Time, trip time.Duration, err error) {
	client := m.client
	if cluster, is := client.(*redis.ClusterClient); is { // all generators must read the same server's clock
		if client, err = cluster.MasterForKey(ctx, m.of.settingsKey()); err != nil {
			return here, server, trip, fmt.Errorf("find the node that holds the session's keys: %w", err)
		}
	}
	for i, begun := 0, time.Now(); i < 5 || i < 20 && time.Since(begun) < Lead/10; i++ { // well within Lead
		before := time.Now()
		at, err := client.Time(ctx).Result()
		if err != nil {
			return here, server, trip, fmt.Errorf("read the server's clock: %w", err)
		}
		if took := time.Since(before); i == 0 || took < trip {
			here, server, trip = before.Add(took/2), at, took
		}
	}
	return here, server, trip, nil
}

// Uncertainty returns the largest error with which this process has converted between its own clock and the server's
// clock since a start. The error includes the drift between the two clocks.
func (m *Member) Uncertainty(ctx context.Context, start Start) (time.Duration, error) {
	here, server, trip, err := m.now(ctx)
	if err != nil {
		return 0, err
	}
	drift := server.Sub(start.Server) - here.Sub(start.Here)
	return max(start.Uncertainty, drift.Abs()+trip/2), nil
}
