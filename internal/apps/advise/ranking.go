package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// This file ranks the measured locks. criteria lists what counts, duel compares two locks by one criterion, and between
// compares them by all criteria. ranked and unbeaten order a field by these comparisons, preferred orders equal locks,
// and undecided describes a field that the rounds do not order.
//
// The comparison is not transitive: lock a may equal b, and b equal c, although a is better than c, and three locks may
// beat one another in a cycle. So ranked never sorts by this comparison, but repeatedly takes out a lock that no
// remaining lock beats.

// matters is the smallest ratio of two locks' figures that counts as a difference.
const matters = 1.1

type criterion struct {
	metric string
	// A lock cannot lose by this criterion if its figure of the metric in size is unknown or below least. If size is "",
	// no figure is negligible.
	size  string
	least float64
}

const (
	// leastCPU is the percentage of a core below which the server's CPU use is negligible.
	leastCPU = 5
	// leastWait is the fraction of the mean hold below which a wait is negligible.
	leastWait = 0.1
	// leastWithout is a fraction of all clients. A smaller number of clients without a turn is negligible.
	leastWithout = 0.01
	// confidence is the probability with which an interval around a median contains the true median. Locks are compared by
	// such intervals.
	confidence = 0.95
)

// without is the number of clients without a turn, in a window with at least as many acquisitions as clients. It
// differs from the metric starved, which needs twice as many acquisitions and is therefore unknown for the slowest
// locks.
const without = "without_a_turn"

// criteria returns the criteria, the most important first: clients without a turn, clients served per second, long
// waits, and the server's CPU.
func (q Question) criteria() (all []criterion) {
	if q.contended() {
		all = append(all, criterion{metric: without})
	}
	all = append(all, criterion{metric: "served_per_s"})
	if q.showsWaits() {
		// In the short windows of advise, the 99th percentile would often be only a lower bound.
		waits := "wait_per_client_p90"
		if q.Workload.Rate > 0 { // in an open loop, a client is only a slot for arrivals
			waits = "wait_p90"
		}
		all = append(all, criterion{waits, waits, leastWait * float64(q.Workload.Hold.Mean())})
	}
	return append(all, criterion{"redis_cpu_per_acq", "redis_cpu", leastCPU})
}

// contended reports whether every client waits all the time, and the window is long enough to serve each client. Only
// then does a client without a turn starve.
func (q Question) contended() bool {
	return q.Workload.Rate == 0 && q.saturation() != nil && q.showsWaits()
}

// relation is the result of a comparison of two locks.
type relation int

const (
	equal  relation = iota // the rounds exclude a difference that counts
	better                 // the first lock is better
	worse                  // the second lock is better
	open                   // the rounds do not decide
)

// duel is the comparison of two locks by one criterion, over the rounds in which both locks were measured.
type duel struct {
	by    criterion
	is    relation
	ratio *results.Ratio // factor by which the first lock is better; nil if it is not known
	// notBetter reports that the rounds rule out a relevant advantage of the first lock over the second. notWorse reports
	// that they rule out a relevant disadvantage. Both matter only if the relation is open.
	notBetter, notWorse bool
	rounds              int    // number of paired rounds
	needed              int    // number of rounds that would decide an open relation; 0 if not known
	text                string // the metric, the ratio and the number of rounds
}

// between compares two locks by the first criterion by which they are not equal. If the rounds leave this criterion
// open but rule out that the first lock is better, a later criterion can still decide for the second lock. The second
// lock then wins, whether it is better or equal by the open criterion. The same applies with the locks exchanged.
func (q Question) between(a, b contender) (d duel) {
	var first *duel // the first open one
	notBetter, notWorse := true, true
	for _, by := range q.criteria() {
		switch d = q.duel(by, a, b); {
		case d.is == equal:
			continue
		case d.is == open:
			if first == nil {
				kept := d
				first = &kept
			}
			notBetter, notWorse = notBetter && d.notBetter, notWorse && d.notWorse
			if notBetter || notWorse {
				continue
			}
		case first == nil, d.is == better && notWorse, d.is == worse && notBetter:
			return d
		}
		return *first
	}
	if first != nil {
		return *first
	}
	return d
}

// duel compares two locks by a criterion. If one of the locks has no figure of the metric, the locks are equal by this
// criterion. A mutex within the process, for example, has no server and therefore no figure of the server's CPU.
func (q Question) duel(by criterion, a, b contender) duel {
	if by.metric == without {
		return q.starvation(by, a, b)
	}
	m, _ := results.FindMetric(by.metric)
	if a.Figure(m) == nil || b.Figure(m) == nil {
		return duel{by: by}
	}
	d := duel{by: by}
	r := ratios(m, a, b)
	d.rounds = len(r.low)
	if d.rounds == 0 {
		d.is, d.text = open, by.metric+": no round has a valid run of both locks"
	} else {
		limits := r.limits()
		enough := q.enough(d.rounds, limits.sure)
		d.ratio, d.is = r.ratio(limits), limits.verdict(enough)
		d.notBetter, d.notWorse = enough && limits.high < math.Log(matters), enough && limits.low > -math.Log(matters)
		d.needed, d.text = limits.needed(d.rounds), d.why(limits)
	}
	// A large ratio between two negligible figures is no reason to prefer a lock.
	slightly := func(c contender) bool {
		if by.size == "" {
			return false
		}
		size := c.figure(by.size).Value
		return size == nil || size.Value < by.least
	}
	switch {
	case slightly(a) && slightly(b), d.is == better && slightly(b), d.is == worse && slightly(a):
		d.is = equal
	}
	return d
}

// enough reports whether the rounds suffice to decide a comparison. They suffice if they give a 95 % interval. They
// also suffice if the question requests fewer rounds than an interval needs and all of these rounds are valid.
func (q Question) enough(rounds int, interval bool) bool {
	return interval || q.Rounds < leastRounds && rounds >= q.Rounds
}

// leastRounds is the smallest number of rounds for a 95 % interval of the median. The range of n rounds contains the
// median with a probability of 1 − 2/2ⁿ: 93.8 % for 5 rounds and 96.9 % for 6.
const leastRounds = 6

// why returns the ratio of the metric as text, or the reason why there is no ratio.
func (d duel) why(l limits) string {
	switch {
	case d.ratio == nil || l.low == math.Inf(-1) || l.high == math.Inf(1) && l.low <= 0:
		return d.by.metric + ": in some rounds only lower bounds are known for both locks"
	case !l.sure && d.rounds < leastRounds:
		return fmt.Sprintf("%s: %s in %s, too few for a 95 %% interval", d.by.metric, d.ratio,
			words.Count(d.rounds, "round"))
	}
	return fmt.Sprintf("%s: %s in %s", d.by.metric, d.ratio, words.Count(d.rounds, "round"))
}

// paired stores, for each round in which the figures of both locks are known, the logarithm of the factor by which the
// first lock is better.
type paired struct {
	low, high []results.Figure // lower and upper limit of each logarithm; they differ if a figure is only a lower bound
	bounds    results.Ratio    // only its AtLeast, AtMost and Digits are set
}

// ratios compares a metric round by round, over the rounds in which both locks have a valid run. The runs of one round
// follow each other, so a disturbance of the machine tends to affect both. Logarithms make "twice as good" and "half as
// good" equally far from equality, so the order of the two locks does not change the result.
func ratios(m results.Metric, a, b contender) (p paired) {
	over, under := a, b
	if m.Better == results.Lower {
		over, under = b, a
	}
	for _, run := range over.Used {
		at := slices.IndexFunc(under.Used, func(other results.Run) bool { return other.Round == run.Round })
		if at < 0 {
			continue
		}
		x, y := m.Of(run), m.Of(under.Used[at])
		if x == nil || y == nil || y.Value <= 0 {
			continue
		}
		known := math.Log(x.Value / y.Value)
		low := known
		if y.AtLeast { // the divisor has no upper limit
			low = math.Inf(-1)
		}
		p.low = append(p.low, results.Figure{Value: low})
		p.high = append(p.high, results.Figure{Value: known, AtLeast: x.AtLeast})
		p.bounds.AtLeast, p.bounds.AtMost = p.bounds.AtLeast || x.AtLeast, p.bounds.AtMost || y.AtLeast
		for _, digits := range []int{x.Digits, y.Digits} {
			if digits > 0 && (p.bounds.Digits == 0 || digits < p.bounds.Digits) {
				p.bounds.Digits = digits
			}
		}
	}
	return p
}

// limits describes the median of paired logarithms: its possible range, and the interval around it.
type limits struct {
	least, most float64 // limits of the median; they differ if figures are only lower bounds
	low, high   float64 // the interval
	sure        bool    // low and high are a 95 % interval, not just the smallest and the largest logarithm
}

func (p paired) limits() (l limits) {
	values := func(all []results.Figure) (numbers []float64) {
		for _, f := range all {
			if f.AtLeast {
				f.Value = math.Inf(1)
			}
			numbers = append(numbers, f.Value)
		}
		return numbers
	}
	l.least, l.most = results.Median(values(p.low)), results.Median(values(p.high))
	low, _, sure := results.FigureInterval(p.low, confidence)
	_, high, _ := results.FigureInterval(p.high, confidence)
	l.low, l.high, l.sure = low.Value, high.Value, sure
	if high.AtLeast {
		l.high = math.Inf(1)
	}
	return l
}

// ratio converts the logarithms to the ratio for the document. It returns nil if the median has neither a lower nor an
// upper limit.
func (p paired) ratio(l limits) *results.Ratio {
	r := p.bounds
	r.Rounds, r.Interval = len(p.low), l.sure
	// A dividend that is only a lower bound makes the ratio a lower bound, and a divisor that is only a lower bound makes
	// the ratio an upper bound. With both kinds, the ratio is a lower bound, or nil if the median has no lower bound.
	known := make([]float64, len(p.high))
	for i, f := range p.high {
		known[i] = f.Value
	}
	median, least, most := results.Median(known), l.low, l.high
	switch {
	case r.AtLeast && r.AtMost && math.IsInf(l.least, -1):
		return nil
	case r.AtLeast:
		r.AtMost, median, most = false, l.least, slices.Max(known)
	case r.AtMost:
		median, least = l.most, slices.Min(known)
	}
	r.Median, r.Low, r.High = math.Exp(median), math.Exp(least), math.Exp(most)
	return &r
}

// verdict returns which lock is better. A lock is better if the interval excludes equality and the median reaches the
// smallest difference that counts. Two locks are equal if the interval excludes such a difference in both directions.
// In all other cases, and whenever enough is false, the relation is open.
func (l limits) verdict(enough bool) relation {
	counts := math.Log(matters)
	switch {
	case !enough:
		return open
	case l.low > 0 && l.least >= counts:
		return better
	case l.high < 0 && l.most <= -counts:
		return worse
	case l.low > -counts && l.high < counts:
		return equal
	}
	return open
}

// needed estimates the number of rounds after which the interval no longer contains the limit nearest to the median.
// This limit is equality if the median differs enough to count, and otherwise the smallest difference that counts. The
// width of the interval is assumed to decrease with the square root of the number of rounds. needed returns 0 if the
// interval has no limit.
func (l limits) needed(rounds int) int {
	middle := (l.least + l.most) / 2
	width := max(middle-l.low, l.high-middle)
	if math.IsInf(width, 0) || math.IsNaN(width) {
		return 0
	}
	distance := math.Abs(middle)
	if counts := math.Log(matters); distance < counts {
		distance = counts - distance
	}
	n := math.Min(float64(rounds)*math.Pow(width/distance, 2), mostRounds)
	return max(leastRounds, rounds+1, int(math.Ceil(n)))
}

// starvation compares the numbers of clients without a turn. It uses differences instead of ratios, because this number
// is 0 for most locks.
func (q Question) starvation(by criterion, a, b contender) duel {
	d := duel{by: by}
	var more []results.Figure // the second lock's number minus the first lock's
	var ofA, ofB, numbers []float64
	for _, run := range a.Used {
		at := slices.IndexFunc(b.Used, func(other results.Run) bool { return other.Round == run.Round })
		if at < 0 {
			continue
		}
		x, y := withoutTurn(run), withoutTurn(b.Used[at])
		if x == nil || y == nil {
			continue
		}
		more = append(more, results.Figure{Value: *y - *x})
		ofA, ofB, numbers = append(ofA, *x), append(ofB, *y), append(numbers, *y-*x)
	}
	if d.rounds = len(more); d.rounds == 0 { // one lock served too few clients; the next criterion shows that
		return d
	}
	low, high, sure := results.FigureInterval(more, confidence)
	least := max(1, leastWithout*float64(q.Workload.Clients))
	median := results.Median(numbers)
	d.text = fmt.Sprintf("%s: median %.0f and %.0f of %d clients in %s", by.metric, results.Median(ofA),
		results.Median(ofB), q.Workload.Clients, words.Count(d.rounds, "round"))
	enough := q.enough(d.rounds, sure)
	d.notBetter, d.notWorse = enough && high.Value < least, enough && low.Value > -least
	switch {
	case max(results.Median(ofA), results.Median(ofB)) < least:
	case enough && low.Value > 0 && median >= least:
		d.is = better
	case enough && high.Value < 0 && median <= -least:
		d.is = worse
	case enough && low.Value > -least && high.Value < least:
	default:
		d.is, d.needed = open, 2*max(d.rounds, leastRounds)
	}
	return d
}

// withoutTurn returns the number of clients that waited and never obtained the lock; nil if the run had fewer
// acquisitions than clients.
func withoutTurn(run results.Run) *float64 {
	n := run.Record.WithoutTurn
	if n == nil || run.Speed.Served < run.Record.Clients {
		return nil
	}
	return new(float64(*n))
}

// starving returns the median number of clients without a turn; nil if it is not known in any round.
func (c contender) starving() *results.Figure {
	var all []results.Figure
	for _, run := range c.Used {
		if n := withoutTurn(run); n != nil {
			all = append(all, results.Figure{Value: *n})
		}
	}
	return results.MedianFigure(all)
}

// duels maps the names of the first and the second lock to the comparison that decides between these locks.
type duels map[[2]string]duel

func (q Question) duels(field []contender) duels {
	all := duels{}
	for _, a := range field {
		for _, b := range field {
			if a.Name != b.Name {
				all[[2]string{a.Name, b.Name}] = q.between(a, b)
			}
		}
	}
	return all
}

// ranked returns the contenders in field in the order of the ranking. The second lock is the best lock by another
// author, if the field contains one, because a variant of the first lock would be no alternative.
func (q Question) ranked(field []contender, known duels) (all []contender) {
	for len(field) > 0 {
		rest := field
		if len(all) == 1 {
			rest = slices.DeleteFunc(slices.Clone(field), func(c contender) bool {
				return q.author(c) == q.author(all[0]) || q.oneCommand(all[0].info)
			})
		}
		if len(rest) == 0 {
			rest = field
		}
		best := q.unbeaten(rest, known)[0]
		all = append(all, best)
		field = slices.DeleteFunc(slices.Clone(field), func(c contender) bool { return c.Name == best.Name })
	}
	return all
}

// unbeaten returns the locks in field that no other lock in field beats, in the order of preference. If every lock in
// field is beaten, it returns the whole field.
func (q Question) unbeaten(field []contender, known duels) []contender {
	stay := slices.DeleteFunc(slices.Clone(field), func(x contender) bool {
		return slices.ContainsFunc(field, func(other contender) bool {
			return known[[2]string{other.Name, x.Name}].is == better
		})
	})
	if len(stay) == 0 {
		stay = slices.Clone(field)
	}
	slices.SortStableFunc(stay, func(a, b contender) int { order, _ := q.preferred(a, b); return order })
	return stay
}

// preferred orders two equal locks. It prefers a lock that needs fewer nodes, then one that needs fewer connections,
// then one that a published library implements, and then the one that was named first. why is the reason for the order.
func (q Question) preferred(a, b contender) (order int, why string) {
	unused := func(c contender) int {
		if q.users(c.info) == nil {
			return 1
		}
		return 0
	}
	for _, by := range []struct {
		order int
		why   string
	}{
		{cmp.Compare(a.info.Nodes, b.info.Nodes), "it needs fewer nodes"},
		{
			cmp.Compare(a.info.Connections.PerWaiter, b.info.Connections.PerWaiter),
			"it needs fewer connections per waiter",
		},
		{
			cmp.Compare(a.info.Connections.PerInstance, b.info.Connections.PerInstance),
			"it needs fewer connections per instance",
		},
		{cmp.Compare(unused(a), unused(b)), "it has other users"},
	} {
		if by.order != 0 {
			return by.order, by.why
		}
	}
	return cmp.Compare(a.order, b.order), "it was named first"
}

// leaders contains the locks that may be the best, and the comparisons between them that are still open.
type leaders struct {
	all     []contender     // in the order of preference
	doubts  []undecidedPair // the undecided comparisons between two of them
	ranking []contender     // the whole field, the best first
	lost    []contender     // contenders without a valid run, any of which may be the best
}

// undecidedPair is an undecided comparison of the locks a and b.
type undecidedPair struct {
	a, b contender
	duel
}

// decisive reports whether more rounds can be expected to decide the comparison.
func (d undecidedPair) decisive() bool { return d.rounds < leastRounds || d.needed > 0 }

// lead ranks the locks in field. It returns the ranking, the locks that may be the best, and the undecided comparisons
// between them.
func (q Question) lead(field []contender) (l leaders) {
	known := q.duels(field)
	l.ranking, l.all = q.ranked(field, known), q.unbeaten(field, known)
	for i, a := range l.all {
		for _, b := range l.all[i+1:] {
			switch d := known[[2]string{a.Name, b.Name}]; d.is {
			case open:
				l.doubts = append(l.doubts, undecidedPair{a, b, d})
			case better, worse: // each lock is beaten by another one, so there is no best lock
				d.text += ", but a third lock is better than the winner"
				l.doubts = append(l.doubts, undecidedPair{a, b, d})
			case equal:
			}
		}
	}
	return l
}

// undecided describes the leaders if comparisons between them are undecided or a contender has no valid run. Otherwise
// it returns nil.
func (q Question) undecided(l leaders) *Undecided {
	if len(l.doubts)+len(l.lost) == 0 {
		return nil
	}
	u := &Undecided{}
	rounds := q.Rounds
	longer := false
	between := slices.Concat(l.all, l.lost)
	for _, c := range between {
		u.Between, u.Take = append(u.Between, c.Name), append(u.Take, q.take(c))
	}
	for _, c := range l.lost {
		u.Why = append(u.Why, fmt.Sprintf("%s: none of its %d runs is valid", c.Name, len(c.Runs)))
	}
	said, lost := map[string]bool{}, false
	for _, d := range l.doubts {
		if !said[d.b.Name] { // one comparison for each lock, with a lock before it
			said[d.b.Name] = true
			u.Why = append(u.Why, fmt.Sprintf("%s against %s, %s", d.a.Name, d.b.Name, d.text))
		}
		rounds, longer = max(rounds, d.needed), longer || !d.decisive()
		lost = lost || d.rounds < min(q.Rounds, leastRounds)
	}
	if lost {
		u.Why = append(u.Why, "rounds were lost because their runs are not valid: use a less busy machine")
	}
	again := q
	again.Named, again.fit, again.Rounds = nil, 0, min(rounds, mostRounds)
	for _, c := range between {
		again.Named = append(again.Named, c.variant)
	}
	w := q.Workload
	if longer {
		w.Duration *= 4
		again.Workload = w
		u.Why = append(u.Why, "if only lower bounds are known, a longer window helps and more rounds do not")
	}
	u.Ask = q.shell("lockbench advise", w, [2]string{"--for", q.purpose()}, [2]string{"--language", q.Language},
		[2]string{"--strategy", names(again.Named)}, [2]string{"--runs", fmt.Sprint(again.Rounds)},
		[2]string{"--budget", again.needs()}) + q.secret()
	return u
}

// mostRounds is the largest number of rounds that an undecided answer proposes.
const mostRounds = 100

// equals returns a sentence that lists the locks that are as good as the first lock of the ranking, and the reason why
// the first lock precedes them. It returns "" if no lock is as good.
func (q Question) equals(l leaders) string {
	if len(l.all) < 2 {
		return ""
	}
	var names, reasons []string
	for _, c := range l.all[1:] {
		names = append(names, c.Name)
		if _, why := q.preferred(l.all[0], c); !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	return fmt.Sprintf("%s %s equally good: no relevant figure differs by %.0f %% or more; %s comes first because %s",
		words.And(names), map[bool]string{true: "is", false: "are"}[len(names) == 1], (matters-1)*100, l.all[0].Name,
		strings.Join(reasons, " and "))
}

// purpose returns the value of --for; "" if it is the default.
func (q Question) purpose() string {
	if q.For == Efficiency {
		return ""
	}
	return string(q.For)
}

// tokenless reports whether the purpose needs fencing tokens and the protected resource cannot check them.
func (q Question) tokenless() bool {
	return q.For == Correctness && q.Workload.Fence != workloads.FenceAll
}
