package session

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/barrier"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Generators is lockbench.Generators, which documents the fields.
type Generators struct {
	Number, Index int
	Session       string
	Patience      time.Duration
}

func (g Generators) several() bool { return g.Number > 1 }

// mostGenerators limits --generators to a number that no Redis can serve, so that the value is certainly a mistake.
const mostGenerators = 1000

// sessionName matches the session names that are safe in keys and reports.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// wrongGenerators returns an error for each invalid option that concerns several generators, and for each option of the
// plan that several generators do not support.
func (p Plan) wrongGenerators() []error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	g := p.Generators
	if g.Number < 0 || g.Number > mostGenerators {
		problem("--generators must be from 1 to %d, not %d", mostGenerators, g.Number)
	}
	if g.Session != "" && !sessionName.MatchString(g.Session) {
		problem("--session must consist of 1 to 32 letters, digits, - and _, not %q", g.Session)
	}
	if g.Patience < 0 {
		problem("--join-timeout must be at least 0, not %v", g.Patience)
	}
	if !g.several() {
		return problems
	}
	if g.Index >= g.Number {
		problem("--generator must be from 0 to %d, one less than --generators, not %d", g.Number-1, g.Index)
	}
	refuse := func(is func(workloads.Spec) bool, why string) {
		if slices.ContainsFunc(p.points(), func(point workloads.Point) bool { return is(point.Workload) }) {
			problem("--generators: %s", why)
		}
	}
	if slices.ContainsFunc(p.storesNeeded(), func(name string) bool { return p.at(name).Started() }) {
		problem("--generators needs --redis with the address of a server that all generators reach")
	}
	for _, v := range p.Strategies {
		if !engine.NeedsStore(v.Info(), p.points()[0].Workload) {
			problem("--generators: strategy %s uses no server, so the generators would not compete for a lock", v.Name())
		}
	}
	refuse(func(w workloads.Spec) bool { return w.Burst > 0 },
		"--burst synchronises the clients of one generator, not the clients of several generators")
	refuse(func(w workloads.Spec) bool { return w.Counter == workloads.CounterApart },
		"with --counter apart each generator would have separate counters")
	refuse(func(w workloads.Spec) bool { return len(w.Faults) > 0 },
		"the other generators would not know of a fault that --fault injects in one of them")
	return problems
}

// settings returns the settings that must be equal in all generators of a session.
func (s *session) settings(server store.Server) map[string]string {
	strategies, redis := []string{}, server.RunIDs()
	for _, v := range s.plan.Strategies {
		strategies = append(strategies, v.Name())
	}
	slices.Sort(redis)
	all := map[string]string{
		"--generators": strconv.Itoa(s.plan.Generators.Number),
		"--strategy":   strings.Join(strategies, ","),
		"--runs":       strconv.Itoa(s.plan.Rounds),
		"the build":    s.report.Tool.Build(),
		"Redis":        strings.Join(redis, ","),
	}
	for _, point := range s.plan.points() {
		for name, values := range point.Workload.Given() {
			text := strings.Join(values, ",")
			if had, is := all["--"+name]; is && had != text {
				text = had + "," + text
			}
			all["--"+name] = text
		}
	}
	all["--seed"] = "drawn"
	if s.seedGiven {
		all["--seed"] = fmt.Sprint(s.plan.points()[0].Workload.Seed)
	}
	return all
}

// together is this process's membership in a session of several generators; nil for a single generator.
type together struct {
	*barrier.Member
	report  *results.Report // this generator's
	start   barrier.Start   // of the current run
	met     bool            // this generator has passed the current run's barrier
	err     error           // returned by the last barrier that failed
	sent    int             // number of runs sent to the other generators
	records [][][]byte      // by generator, compressed
	planned map[string]bool // the titles of the session's runs
	values  int             // number of JSON values in this generator's largest record
}

// If the plan has more than one generator, join joins the session that they share, and adopts its ID and its seed.
func (s *session) join(ctx context.Context, server store.Server) error {
	g := s.plan.Generators
	if !g.several() {
		return nil
	}
	s.progress("", 0, "wait for the other generators", 0, nil)
	of := barrier.Generators{
		Session: cmp.Or(g.Session, "default"), Number: g.Number, Index: g.Index,
		Patience: cmp.Or(g.Patience, 2*time.Minute), Settings: s.settings(server),
		Seed: s.plan.points()[0].Workload.Seed,
	}
	member, err := barrier.Join(ctx, server.(*servers.Server).Observer(), of)
	switch {
	case errors.Is(err, barrier.ErrRefused):
		if _, several := err.(interface{ Unwrap() []error }); !several {
			err = errors.Join(err)
		}
		return limited{err}
	case err != nil:
		return err
	}
	s.together = &together{
		Member: member, report: s.report, records: make([][][]byte, g.Number), planned: s.planned(),
	}
	if s.plan.Logf != nil {
		s.plan.Logf("generator %d of %d has joined", member.Index, g.Number)
	}
	if s.id, err = member.Agree(ctx); err != nil {
		return err
	}
	s.plan = s.plan.withSeed(member.Seed + int64(member.Index))
	s.report.Workload, s.report.Points = s.plan.points()[0].Workload, s.plan.Sweep
	s.report.Shared = &results.Shared{Session: of.Session, Generator: member.Index}
	return nil
}

// planned returns the titles of the plan's runs.
func (s *session) planned() map[string]bool {
	all := map[string]bool{}
	for _, v := range s.plan.Strategies {
		for _, point := range s.plan.points() {
			all[results.Run{Strategy: v.Name(), Point: point.Label}.Title()] = true
		}
	}
	return all
}

// order returns the seed that determines the order of the runs. All generators of a session use the same seed.
func (s *session) order() uint64 {
	if s.together != nil {
		return uint64(s.together.Seed)
	}
	return uint64(s.plan.points()[0].Workload.Seed)
}

// context returns a child of ctx that also ends when another generator is lost.
func (t *together) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if t == nil {
		return context.WithCancel(ctx)
	}
	return t.Context(ctx)
}

// failed returns the error of the barrier that failed; nil if none has failed.
func (t *together) failed() error {
	if t == nil {
		return nil
	}
	return t.err
}

// begin waits until all generators are prepared for the current run, and returns the instant at which the run starts.
func (t *together) begin(ctx context.Context) (time.Time, error) {
	record, err := t.encode()
	var records [][]byte
	if err == nil {
		t.start, records, err = t.Meet(ctx, record)
	}
	if err != nil {
		t.err = err
		return time.Time{}, err
	}
	t.met, t.sent = true, len(t.report.Runs)
	t.report.Shared.UncertaintyNS = max(t.report.Shared.UncertaintyNS, int64(t.start.Uncertainty))
	t.take(records, record)
	return t.start.Here, nil
}

// pass ends the current run. If this generator skipped the run, pass still meets the other generators at the barrier of
// that run, so that they do not wait in vain.
func (t *together) pass(ctx context.Context) error {
	if !t.met && t.err == nil {
		_, _ = t.begin(ctx)
	}
	t.met = false
	return t.err
}

// onServersClock converts a run's start to the server's clock, which all generators share. If the uncertainty of that
// conversion is unknown, it drops the run's leases, because they cannot be compared with those of other generators.
func (t *together) onServersClock(ctx context.Context, run *results.Run) {
	if t == nil || run.Started.IsZero() {
		return
	}
	run.Started = t.start.Server.Add(run.Started.Sub(t.start.Here))
	uncertainty, err := t.Uncertainty(ctx, t.start)
	run.Record.UncertaintyNS = int64(uncertainty)
	if err != nil || len(run.Record.Leases) > mostLeaseBytes/len(t.records) {
		run.Record.Leases = nil
	}
}

// mostLeaseBytes limits the size of the packed leases of all generators in a run. A lease takes about six bytes. A
// generator that exceeds its share sends no leases, because the records must fit into Redis and generator 0 keeps the
// records of all runs.
const mostLeaseBytes = 8 << 20

// mostRecordText limits the size of a decompressed record in bytes. The number of JSON values in a record is limited to
// mostValues plus four times the number in this generator's largest record, because all generators have the same plan.
// The function values estimates the number by counting commas and brackets.
const (
	mostRecordText = 32 << 20
	mostValues     = 10_000
)

func values(text []byte) int {
	return bytes.Count(text, []byte(",")) + bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("["))
}

// encode returns the compressed report with the runs that have not been sent yet.
func (t *together) encode() ([]byte, error) {
	part := *t.report
	part.Runs = part.Runs[t.sent:]
	var text, record bytes.Buffer
	packed := gzip.NewWriter(&record)
	if err := errors.Join(results.WriteJSON(io.MultiWriter(packed, &text), &part), packed.Close()); err != nil {
		return nil, fmt.Errorf("pack the record: %w", err)
	}
	t.values = max(t.values, values(text.Bytes()))
	return record.Bytes(), nil
}

// decode unpacks a record. Any user of the Redis could have written the record, so decode limits its size and rejects
// runs that are not in the plan.
func (t *together) decode(record []byte) (*results.Report, error) {
	packed, err := gzip.NewReader(bytes.NewReader(record))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(packed, mostRecordText+1))
	switch n := values(text); {
	case err != nil:
		return nil, fmt.Errorf("unpack: %w", err)
	case len(text) > mostRecordText:
		return nil, fmt.Errorf("the record has more than %d bytes", mostRecordText)
	case n > mostValues+4*t.values:
		return nil, fmt.Errorf("the record has %d values, but the largest record of generator %d has only %d", n, t.Index,
			t.values)
	}
	part, err := results.ReadJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if part.Shared == nil {
		return nil, errors.New("the record is not part of a session")
	}
	for _, run := range part.Runs {
		if !t.planned[run.Title()] || run.Round < 1 || run.Round > t.report.Rounds {
			return nil, fmt.Errorf("the record has a run of %s in round %d, which is not in the plan",
				untrusted.Printable(run.Title()), run.Round)
		}
	}
	return part, nil
}

// take stores the records that all generators sent at the last barrier. It uses mine as this generator's record instead
// of the copy in Redis, which another client may have changed.
func (t *together) take(records [][]byte, mine []byte) {
	for i, record := range records {
		if i == t.Index {
			record = mine
		}
		if record != nil {
			t.records[i] = append(t.records[i], record)
		}
	}
}

// handIn sends this generator's last record to generator 0. In generator 0, handIn replaces the report with the merged
// report of all generators.
func (s *session) handIn(ctx context.Context, failure error) error {
	t := s.together
	if t == nil {
		return nil
	}
	record, err := t.encode()
	var records [][]byte
	lost, nothing := t.Lost(), len(s.report.Runs) == 0 && failure != nil
	if err != nil || s.report.Interrupted || t.err != nil && lost == nil || nothing {
		t.Leave(ctx)
	} else {
		records, err = t.HandIn(ctx, record)
		lost = t.Lost()
	}
	// Generator 0 reports the records that it has, even if it was interrupted or the server no longer replies.
	itself := errors.Is(err, barrier.ErrLost) || lost != nil && lost.Index == t.Index
	if records == nil && record != nil && t.Index == 0 && !itself && !nothing {
		records = [][]byte{record}
	}
	if records != nil {
		t.take(records, record)
		merged, problem := t.merge()
		if problem == nil {
			s.report = merged
		}
		err = errors.Join(err, problem)
	}
	if err == nil && lost != nil && failure == nil && !s.report.Interrupted {
		err = lost
	}
	return err
}

// merge adds up the records of all generators. If a record cannot be read, its generator is marked as missing.
func (t *together) merge() (*results.Report, error) {
	var parts []results.Generated
	for i, records := range t.records {
		part := results.Generated{Name: fmt.Sprintf("generator %d", i)}
		if lost := t.Lost(); lost != nil && lost.Index == i && i != t.Index {
			part.Missing = lost.Why
		}
		var runs []results.Run
		for _, record := range records {
			report, err := t.decode(record)
			if err != nil {
				part.Missing = fmt.Sprintf("handed in a damaged record: %v", err)
				continue
			}
			part.Report, runs = report, append(runs, report.Runs...)
		}
		if part.Report != nil {
			part.Runs = runs
		}
		parts = append(parts, part)
	}
	return results.Merge(parts)
}

// abandon closes the servers if the session ends before its first measurement. If several generators share the session,
// abandon also leaves that session, so that the others do not wait for this one.
func (s *session) abandon(ctx context.Context) []error {
	if s.together != nil {
		s.together.Leave(ctx)
	}
	return s.closeStores(ctx)
}
