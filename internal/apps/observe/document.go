package observe

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// schema is the name and the version of the JSON format of a Document.
const schema = "lockbench/observation/1"

// Document describes the contention of the locks in a MONITOR stream.
type Document struct {
	Schema  string       `json:"schema"`
	Tool    results.Tool `json:"tool"`
	Capture Capture      `json:"capture"`
	All     Lock         `json:"all"`   // of all locks, including unlisted ones
	Locks   []Lock       `json:"locks"` // in descending order of the total wait
	// Unlisted is the number of locks that are not in Locks, because Options.Top limits the list or their keys were
	// dropped.
	Unlisted   int       `json:"unlisted,omitempty"`
	Caches     Aside     `json:"caches"`         // keys that are set like a lock, but not used like one
	Semaphores Aside     `json:"not_understood"` // keys with counters, as semaphores have
	Findings   []Finding `json:"findings,omitempty"`

	Thresholds []results.Judgement `json:"thresholds,omitempty"`
	Command    *Command            `json:"command,omitempty"` // the observed command; nil for other captures
	// Stopped is the reason why a live capture ended early; "" if it did not end early. Cut reports that the reason was a
	// fault, so commands are missing.
	Stopped     string `json:"stopped,omitempty"`
	Cut         bool   `json:"cut,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"` // the user interrupted it, so the rest of the stream was not read

	TraceFile string `json:"-"` // the name of the trace file in the output of WriteWorkload
	trace     *Trace
}

// Capture describes the input: its length, and how many of its lines were readable.
type Capture struct {
	Lines     int64     `json:"lines"`
	Commands  int64     `json:"commands"`  // including those of scripts
	Malformed int64     `json:"malformed"` // lines that are not from MONITOR
	Backwards int64     `json:"backwards"` // lines with an earlier time than the previous line
	First     time.Time `json:"first"`     // by Redis's clock
	Seconds   float64   `json:"seconds"`
	Nodes     int       `json:"nodes,omitempty"` // number of Redlock nodes whose captures were joined; 0 for one capture
}

// Lock contains the counts, rates and durations of one lock or, in Document.All, of all locks together.
type Lock struct {
	Name      string `json:"name"`
	Database  int    `json:"database,omitempty"`
	Shape     string `json:"shape,omitempty"`
	Libraries string `json:"libraries,omitempty"` // libraries that send commands of this shape
	Counts
	PerSecond      float64  `json:"acquisitions_per_second"`
	TriesPer       *float64 `json:"tries_per_acquisition"`
	CommandsPer    *float64 `json:"commands_per_acquisition"`
	CommandPercent float64  `json:"commands_percent"` // of all commands of the capture
	HeldPercent    float64  `json:"held_percent"`     // of the time of the capture; mean of several locks
	Waiting        float64  `json:"waiting_mean"`     // mean number of waiting clients
	// Hold lasts from the grant to the delete or the end of the TTL, as Redis executed them. Wait lasts from the time at
	// which Redis received the first try of an owner to the grant.
	Hold results.Distribution `json:"hold"`
	Wait results.Distribution `json:"wait"`
	Gap  results.Distribution `json:"gap"` // from the end of a lease to the next grant, if that client was waiting
}

// Aside counts the keys of one kind that are not locks, and names a few of them.
type Aside struct {
	Keys     int      `json:"keys"`
	Commands int64    `json:"commands"`
	Names    []string `json:"names,omitempty"` // of a few of them
}

// Finding explains a figure in a sentence, or reports a misuse of a lock.
type Finding struct {
	Fault string `json:"fault,omitempty"` // JSON name of the field of Counts that counts this fault; "" if it is not one
	About string `json:"about,omitempty"` // the name of the lock
	Says  string `json:"says"`
}

// document returns the result. It first ends all leases and waits that are still open, because the capture is over.
func (o *observer) document(s counted, options Options) *Document {
	name := untrusted.Printable
	if options.HashKeys {
		seed := maphash.MakeSeed()
		name = func(text string) string { return fmt.Sprintf("key-%010x", maphash.String(seed, text)>>24) }
	}
	d := &Document{
		Schema: schema, Tool: results.Tool{Name: "lockbench", Version: lockbench.Version()},
		Capture: Capture{
			Lines: s.number, Commands: s.commands, Malformed: s.malformed, Backwards: o.backwards,
			First: time.UnixMicro(o.first).UTC(), Seconds: o.seconds(),
		},
	}
	all, locks := o.folded, []*key{}
	number := o.foldedN
	for _, k := range o.keys.all {
		if o.keys.isLock(k) {
			o.close(k)
			all.add(&k.lock.figures)
			locks = append(locks, k)
			number++
			continue
		}
		o.forget(k)
	}
	slices.SortFunc(locks, func(a, b *key) int {
		return cmp.Or(cmp.Compare(b.lock.waitedUS, a.lock.waitedUS), cmp.Compare(b.lock.Commands, a.lock.Commands),
			cmp.Compare(a.name, b.name), cmp.Compare(a.database, b.database))
	})
	d.All = o.lock("all", &all, s.commands, max(1, number))
	for _, k := range locks[:min(len(locks), options.Top)] {
		l := o.lock(name(k.name), &k.lock.figures, s.commands, 1)
		l.Database = k.database
		d.Locks = append(d.Locks, l)
	}
	d.noteFaults(locks, name)
	d.note(locks)
	d.Unlisted = number - len(d.Locks)
	d.noteAll(&all)
	if o.journal != nil {
		d.trace = o.trace(name)
		d.noteTrace()
	}
	for _, part := range []struct {
		to   *Aside
		from nonLocks
	}{{&d.Caches, o.caches}, {&d.Semaphores, o.unclear}} {
		*part.to = Aside{Keys: part.from.keys, Commands: part.from.commands}
		slices.Sort(part.from.names)
		for _, key := range part.from.names {
			part.to.Names = append(part.to.Names, name(key))
		}
	}
	return d
}

// lock converts the figures of one lock, or the sum of several, for the document. commands is the number of all
// commands in the capture.
func (o *observer) lock(name string, f *figures, commands int64, locks int) Lock {
	l := Lock{
		Name: name, Counts: f.Counts, Hold: f.holds.distribution(), Wait: f.waits.distribution(),
		Gap: f.gaps.distribution(),
	}
	l.Shape, l.Libraries = f.shape()
	if seconds := o.seconds(); seconds > 0 {
		l.PerSecond = float64(f.Acquisitions) / seconds
		l.HeldPercent = 100 * float64(f.heldUS) / 1e6 / seconds / float64(locks)
		l.Waiting = float64(f.waitedUS) / 1e6 / seconds
	}
	l.CommandPercent = 100 * float64(f.Commands) / float64(max(1, commands))
	if f.Acquisitions > 0 {
		l.TriesPer = new(float64(f.Tries) / float64(f.Acquisitions))
		l.CommandsPer = new(float64(f.Commands) / float64(f.Acquisitions))
	}
	return l
}

// shape returns the most frequent ways to acquire and to release the lock, and the libraries that use them.
func (f *figures) shape() (name, libraries string) {
	most := func(is ...act) int {
		best := -1
		for i, s := range shapes {
			if slices.Contains(is, s.is) && f.shapes[i] > 0 && (best < 0 || f.shapes[i] > f.shapes[best]) {
				best = i
			}
		}
		return best
	}
	take, give := most(tries, grants), most(releases, deletes)
	if take < 0 {
		take = most(refused)
	}
	if take < 0 {
		return "", ""
	}
	name, libraries = shapes[take].name, shapes[take].libraries
	if give >= 0 {
		name += "; " + shapes[give].name
	}
	const idle = 2 // at least every second refused try is followed by an idle release
	switch {
	case f.signals > 0:
		libraries = signalled[shapes[take].name]
	case give >= 0 && shapes[give].is == deletes && !shapes[give].scripted:
		libraries = shapes[give].libraries
	case shapes[take].name == setNXBare && f.IdleRelease > 10 && f.IdleRelease*idle > f.Tries-f.Acquisitions:
		libraries = "redsync"
	}
	return name, libraries
}

// Name returns the name in the document's schema, which is observation.
func (d *Document) Name() string { return document.Head{Schema: d.Schema}.Name() }

// Lay writes the document as text: what was captured, a table of the locks, and what the figures show.
func (d *Document) Lay(p *layout.Page) {
	if p.Markdown {
		p.WriteString("# Lock contention observed\n\n")
	}
	locks := len(d.Locks) + d.Unlisted
	head := fmt.Sprintf("%s in %s · %.0f %% belong to %s", results.PerSecond.Format(d.rate()),
		results.Nanoseconds.Format(d.Capture.Seconds*1e9), d.All.CommandPercent, words.Count(locks, "lock"))
	if d.Capture.Nodes > 0 {
		p.Entry("nodes", fmt.Sprintf("%d; a lease needs the same value on %d of them", d.Capture.Nodes,
			d.Capture.Nodes/2+1))
	}
	if d.Command != nil {
		p.Entry("command", untrusted.Printable(d.Command.Line+" · "+d.Command.Ended))
	}
	p.Entry("commands", head)
	p.Entry("shape", words.Dotted(d.All.Shape, d.All.Libraries))
	switch {
	case d.Interrupted:
		p.Entry("!stopped", "the rest of the stream was not read")
	case d.Cut:
		p.Entry("!stopped", untrusted.Printable(d.Stopped))
	case d.Stopped != "":
		p.Entry("stopped", d.Stopped)
	}
	if locks == 0 {
		p.Entry("locks", "none found: no key is set with NX and then compared or tried again. If the names of "+
			"locks begin with P, use --prefix P")
	} else {
		p.WriteByte('\n')
		d.table(p)
	}
	p.WriteByte('\n')
	for _, f := range d.Findings {
		if f.Fault != "" {
			p.Fault(f.About, f.Says)
		} else {
			p.Point(f.About, f.Says)
		}
	}
	d.writeNonLocks(p)
	if d.Command != nil && d.Capture.Commands == 0 {
		p.Point("", d.Unjudged())
	}
	p.Remark("", blind)
	for _, j := range d.Thresholds {
		if j.Passed {
			p.Entry("passed", j.String())
		} else {
			p.Entry("! CROSSED", j.String())
		}
	}
}

// rate returns the mean number of commands per second; 0 if the capture has no duration.
func (d *Document) rate() float64 {
	if d.Capture.Seconds <= 0 {
		return 0
	}
	return float64(d.Capture.Commands) / d.Capture.Seconds
}

// table writes one row for each listed lock. If there are several locks, the last row contains the figures of all locks
// together.
func (d *Document) table(p *layout.Page) {
	rows := [][]string{{
		"lock", "acq/s", "tries", "held", "hold p50", "p99", "wait p50", "p99", "waiting", "expired", "unsafe",
		"cmd/acq",
	}}
	if p.HTML { // on a phone, HTML shows each row as a card, in which two columns named p99 would be ambiguous
		rows[0][5], rows[0][7] = "hold p99", "wait p99"
	}
	listed := d.Locks
	if len(d.Locks)+d.Unlisted > 1 {
		listed = append(slices.Clone(listed), d.All)
	}
	for i, l := range listed {
		name := l.Name
		if l.Database > 0 {
			name += fmt.Sprintf(" (db %d)", l.Database)
		}
		held := fmt.Sprintf("%.0f %%", l.HeldPercent)
		if i == len(d.Locks) {
			held = ""
		}
		rows = append(rows, []string{
			p.Text(name), results.Short(l.PerSecond), ratio(l.TriesPer), held,
			l.Hold.P50.String(), l.Hold.P99.String(), l.Wait.P50.String(), l.Wait.P99.String(),
			results.Short(l.Waiting), results.Whole(float64(l.Expired)), results.Whole(float64(l.unsafe())),
			ratio(l.CommandsPer),
		})
	}
	p.Table(1, "lrrrrrrrrrrr", rows)
	if d.Unlisted > 0 {
		p.Remark("", fmt.Sprintf("%s not listed (--top)", words.Count(d.Unlisted, "further lock")))
	}
}

func ratio(x *float64) string {
	if x == nil {
		return results.NotKnown
	}
	return fmt.Sprintf("%.2f", *x)
}

// writeNonLocks writes how many keys are not locks, with a few of their names, and how many lines are not from MONITOR.
func (d *Document) writeNonLocks(p *layout.Page) {
	for _, part := range []struct {
		keys Aside
		text string
	}{
		{d.Caches, "left out: set with NX, but neither compared nor tried again (caches, markers of finished work). " +
			"If the names of locks begin with P, use --prefix P"},
		{d.Semaphores, "left out: counters, as semaphores have, are not supported"},
	} {
		if part.keys.Keys > 0 {
			p.Point("", fmt.Sprintf("%s, such as %s, %s", words.Count(part.keys.Keys, "key"),
				words.And(part.keys.Names),
				part.text))
		}
	}
	if d.Capture.Malformed > 0 {
		p.Point("", fmt.Sprintf("%s left out: not from MONITOR", words.Count(int(d.Capture.Malformed), "line")))
	}
	if d.Capture.Backwards > 0 {
		p.Point("", fmt.Sprintf("%s with an earlier time than the previous line: the input consists of several captures, "+
			"or Redis's clock was set back. The durations around these lines are wrong",
			words.Count(int(d.Capture.Backwards), "line")))
	}
}

const blind = "A wait lasts from the first try that Redis received to the grant. Waits inside a process, before " +
	"a client sends a command, do not appear. A hold lasts from the grant to the delete at Redis, including both " +
	"network paths. waiting is the mean number of waiting clients. unsafe counts leases without a TTL, leases that " +
	"another client deleted or overwrote, and tries with the value that holds the lock. Commands include those of " +
	"scripts."
