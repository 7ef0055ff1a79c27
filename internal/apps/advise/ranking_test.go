package advise

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// lostIn returns a change that makes the runs of the given rounds invalid.
func lostIn(rounds ...int) func(*results.Run) {
	return func(r *results.Run) {
		if slices.Contains(rounds, r.Round) {
			r.Invalid = results.PlainTexts("books")
		}
	}
}

// hundred sets a load of 100 clients that all request the lock all the time.
func hundred(q *Question) {
	q.Workload.Clients = 100
	q.Workload.Duration = workloads.Duration(1200 * time.Millisecond)
}

// starves returns a change that sets the number of clients without a turn: numbers[0] in round 1, numbers[1] in round
// 2, and so on. After the last number, it starts again with numbers[0].
func starves(numbers ...int64) func(*results.Run) {
	return func(r *results.Run) {
		r.Record.Clients, r.Speed.Served = 100, 190
		r.Record.WithoutTurn = &numbers[(r.Round-1)%len(numbers)]
	}
}

// TestUndecidedIsNotEqual plants rounds that leave a comparison open: lost rounds, scattered waits and waits that are
// only lower bounds. The advice must then be undecided, with the reason, and must not report equal locks.
func TestUndecidedIsNotEqual(t *testing.T) {
	t.Parallel()
	slow, quick := lock{"redsync:tuned=true", 100, 297, false, 50, nil}, lock{"handoff", 100, 45, false, 50, nil}
	among := func(q *Question) { q.Named = variants("redsync:tuned=true,handoff") }
	waits := func(ns ...float64) func(*results.Run) {
		return func(r *results.Run) {
			ms := ns[(r.Round-1)%len(ns)]
			b := &results.Bound{NS: int64(max(ms, -ms) * 1e6), AtLeast: ms < 0}
			r.Waiting.PerClient.P90 = b
		}
	}
	for _, test := range []struct {
		name     string
		question func(*Question)
		rounds   int
		locks    []lock
		choice   string
		between  string // the locks of an undecided answer
		says     string // part of the reasons, or of the text about equal locks
	}{
		{"all rounds decide", among, 6, []lock{slow, quick}, "handoff", "", ""},
		{
			"a lost round leaves no interval", among, 6,
			[]lock{slow.with(lostIn(3)), quick},
			"", "redsync:tuned=true handoff", "in 5 rounds, too few for a 95 % interval",
		},
		{
			"no round of both", among, 6,
			[]lock{slow.with(lostIn(1, 2, 3)), quick.with(lostIn(4, 5, 6))},
			"", "redsync:tuned=true handoff", "no round has a valid run of both locks; rounds were lost",
		},
		{
			"waits that scatter", among, 6,
			[]lock{slow.with(waits(30, 60, 31, 58, 62, 29)), quick},
			"", "redsync:tuned=true handoff", "wait_per_client_p90: ",
		},
		{
			"only lower bounds", among, 6,
			[]lock{slow.with(waits(-300)), quick.with(waits(-45))},
			"", "redsync:tuned=true handoff", "a longer window helps",
		},
		{
			"one that lost all its rounds may be the best", among, 6,
			[]lock{slow, quick.with(lostIn(1, 2, 3, 4, 5, 6))},
			"", "redsync:tuned=true handoff",
			"handoff: none of its 6 runs is valid",
		},
		{
			"each lock is named once", func(q *Question) { q.Named = variants("spin,pubsub,blpop,handoff") }, 6,
			[]lock{
				like("spin").with(lostIn(1)), like("pubsub").with(lostIn(2)), like("blpop").with(lostIn(3)),
				like("handoff").with(lostIn(4)),
			},
			"", "spin pubsub handoff blpop", "spin against pubsub, served_per_s: ",
		},
		{"a bound above the other", among, 6, []lock{slow.with(waits(-300)), quick}, "handoff", "", ""},
		{
			"a bound above the other, and a round of bounds alone", func(q *Question) { among(q); q.Rounds = 9 }, 9,
			[]lock{slow.with(waits(-300)), quick.with(waits(45, 45, 45, -45, 45, 45, 45, 45, 45))},
			"handoff", "", "",
		},
		{
			"equal locks, and why one is first", among, 6,
			[]lock{like("handoff"), like("redsync:tuned=true")},
			"redsync:tuned=true", "", "handoff is equally good: no relevant figure differs by 10 % or more; " +
				"redsync:tuned=true comes first because it needs fewer connections per instance",
		},
		{
			"clients that starve", hundred, 6,
			[]lock{like("spin").with(starves(16, 40, 22, 31, 19, 27)), like("handoff").with(starves(0))},
			"handoff", "", "",
		},
		{
			"clients that starve outweigh a higher rate", hundred, 6,
			[]lock{
				lock{"spin", 150, 20, false, 50, nil}.with(starves(16, 40, 22, 31, 19, 27)),
				like("handoff").with(starves(0)),
			},
			"handoff", "", "",
		},
		{
			"clients that may starve, and fewer are served", hundred, 6,
			[]lock{
				lock{"spin", 50, 20, false, 50, nil}.with(starves(0, 4, 0, 5, 3, 6)), like("handoff").with(starves(0)),
			},
			"handoff", "", "",
		},
		{
			"clients that may starve, and more are served", hundred, 6,
			[]lock{
				lock{"spin", 150, 20, false, 50, nil}.with(starves(0, 4, 0, 5, 3, 6)), like("handoff").with(starves(0)),
			},
			"", "spin handoff", "without_a_turn: ",
		},
		{
			"a single client without a turn is chance", hundred, 6,
			[]lock{like("spin").with(starves(0, 1, 0, 0, 0, 0)), like("handoff").with(starves(0))},
			"spin", "", "is equally good",
		},
		{
			"clients that think have no turn by chance", func(q *Question) {
				hundred(q)
				q.Workload.Think = workloads.Fixed(5 * time.Second)
			}, 6,
			[]lock{like("spin").with(starves(16, 40, 22, 31, 19, 27)), like("handoff").with(starves(0))},
			"spin", "", "is equally good",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			q := newQuestion(test.question)
			a := q.advise(reported(test.rounds, test.locks...))
			sound(t, a)
			between, says := "", ""
			if u := a.Undecided; u != nil {
				between, says = strings.Join(u.Between, " "), strings.Join(u.Why, "; ")
				if len(u.Why) > len(u.Between)+1 {
					t.Errorf("%d reasons for %d locks", len(u.Why), len(u.Between))
				}
				if !strings.HasPrefix(u.Ask, "lockbench advise ") || !strings.Contains(u.Ask, " --budget ") {
					t.Errorf("it proposes %q", u.Ask)
				}
			} else if a.Choice != nil {
				says = a.Choice.Tied
			}
			if named(a.Choice) != test.choice || between != test.between || !strings.Contains(says, test.says) ||
				test.says == "" && says != "" {
				t.Errorf("it recommends %q, undecided between %q, and says %q; want %q, %q and %q",
					named(a.Choice), between, says, test.choice, test.between, test.says)
			}
		})
	}
}

// sequence records the plans that Answer measures. Each call of run returns the next of the prepared reports.
type sequence struct {
	reports []*results.Report
	plans   []lockbench.Plan
}

func (s *sequence) run(_ context.Context, plan lockbench.Plan) (*results.Report, error) {
	s.plans = append(s.plans, plan)
	return s.reports[len(s.plans)-1], nil
}

func TestLostRoundsAreRepeated(t *testing.T) {
	t.Parallel()
	slow, quick := lock{"redsync:tuned=true", 100, 297, false, 50, nil}, lock{"handoff", 100, 45, false, 50, nil}
	for _, test := range []struct {
		name    string
		budget  time.Duration
		reports []*results.Report
		rounds  []int  // number of rounds in each plan
		again   string // the locks in the second plan
		choice  string
	}{
		{"nothing is lost", time.Hour, []*results.Report{reported(6, slow, quick, like("spin"))}, []int{6}, "", "spin"},
		{
			"one round", time.Hour, []*results.Report{
				reported(6, slow.with(lostIn(2)), quick, lock{"spin", 50, 400, false, 50, nil}), reported(1, slow, quick),
			}, []int{6, 1}, "redsync:tuned=true,handoff", "handoff",
		},
		{
			"that of both, in different rounds, and one of the repeated ones", time.Hour, []*results.Report{
				reported(6, slow.with(lostIn(2)), quick.with(lostIn(5))), reported(2, slow.with(lostIn(1)), quick),
				reported(1, slow, quick),
			}, []int{6, 2, 1}, "redsync:tuned=true,handoff", "handoff",
		},
		{
			"all of one lock", time.Hour, []*results.Report{
				reported(6, slow, quick.with(lostIn(1, 2, 3, 4, 5, 6))), reported(6, slow, quick),
			}, []int{6, 6}, "redsync:tuned=true,handoff", "handoff",
		},
		{
			"no time is left", windUp + startUp,
			[]*results.Report{reported(6, slow.with(lostIn(2)), quick)},
			[]int{6},
			"", "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			q, s := newQuestion(func(q *Question) { q.Budget = test.budget }), &sequence{reports: test.reports}
			a, err := q.Answer(t.Context(), s.run, nil)
			if err != nil {
				t.Fatal(err)
			}
			var rounds []int
			for _, plan := range s.plans {
				rounds = append(rounds, plan.Rounds)
			}
			if !slices.Equal(rounds, test.rounds) || named(a.Choice) != test.choice ||
				len(s.plans) > 1 && names(s.plans[1].Strategies) != test.again {
				t.Errorf("it measured %v rounds and recommends %q (%+v), want %v and %q",
					rounds, named(a.Choice), a.Undecided, test.rounds, test.choice)
			}
			if (a.Choice == nil) != (a.Undecided != nil) {
				t.Errorf("choice %+v, undecided %+v", a.Choice, a.Undecided)
			}
		})
	}
}

// If the time budget ends before the last round, the advice must use the rounds that were measured, and report that
// rounds are missing.
func TestBudgetLimitsRounds(t *testing.T) {
	t.Parallel()
	const budget = windUp + 100*time.Millisecond
	q, begun := newQuestion(func(q *Question) { q.Budget = budget }), time.Now()
	a, err := q.Answer(t.Context(), func(ctx context.Context, _ lockbench.Plan) (*results.Report, error) {
		if end, bound := ctx.Deadline(); !bound || end.After(begun.Add(budget)) {
			t.Fatalf("the measurement may go on until %v", end)
		}
		<-ctx.Done()
		return reported(4, like("spin"), lock{"pubsub", 100, 200, false, 50, nil}), nil
	}, nil)
	if err != nil || a.Interrupted || a.Choice != nil || a.Undecided == nil ||
		!strings.Contains(a.Notes.String(), "--budget 5.1s ended before all rounds were measured") {
		t.Errorf("%+v, %+v, notes %q, %v", a.Choice, a.Undecided, a.Notes, err)
	}
	long := newQuestion(func(q *Question) { q.Workload.Duration = workloads.Duration(time.Minute) })
	if _, err := long.Sized(true, true); err == nil || !strings.Contains(err.Error(), "too short for windows of 1m0s") {
		t.Errorf("windows that were asked for are longer than the budget: %v", err)
	}
}

// The order in which two locks are compared must not change the result, however much the rounds vary. Two locks with
// the same distribution must rarely be found to differ.
func TestDuels(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(17, 1))
	by := criterion{metric: "served_per_s"}
	q := newQuestion(nil)
	const draws = 100
	called := map[relation]int{}
	for range draws {
		a := reported(6, like("spin"), like("pubsub"))
		for i := range a.Runs {
			rate := 100 * math.Exp(0.1*random.NormFloat64())
			a.Runs[i].Speed.ServedPerSecond = rate
		}
		lead, _ := q.standing(a.Summaries())
		one, other := lead.ranking[0], lead.ranking[1]
		there, back := q.duel(by, one, other), q.duel(by, other, one)
		opposite := map[relation]relation{equal: equal, better: worse, worse: better, open: open}
		if back.is != opposite[there.is] {
			t.Fatalf("%s one way, %s the other", there.text, back.text)
		}
		called[there.is]++
	}
	if wrong := called[better] + called[worse]; wrong > draws/20 || called[open] < draws/2 {
		t.Errorf("of %d duels between equals: %v", draws, called)
	}
}
