package results

import "strings"

// This file defines all remarks in one table, with code, severity, text and explanation. A test fails if
// docs/VALIDITY.md differs from the table.

// Code identifies a kind of remark in JSON and in code. Programs must compare codes and not texts, because a text may
// change.
type Code string

// These codes mark a run as invalid: its figures cannot be trusted, for the reason that the code gives.
const (
	NoWindow       Code = "no_window"
	SeenLate       Code = "seen_late"
	StoodStill     Code = "stood_still"
	Unbalanced     Code = "unbalanced"
	PoolTimeouts   Code = "pool_timeouts"
	LateStarts     Code = "late_starts"
	RateNotOffered Code = "rate_not_offered"
	OnlyErrors     Code = "only_errors"
	NoAcquisition  Code = "no_acquisition"
	ManyErrors     Code = "many_errors"
	FaultAbsent    Code = "fault_absent"
	DriverSilent   Code = "driver_silent"
	ClientsHung    Code = "clients_hung"
	KeysLost       Code = "keys_lost"
	EndedEarly     Code = "ended_early"
	OtherServers   Code = "other_servers"
	RecordMissing  Code = "record_missing"
	NotTogether    Code = "not_together"
)

// These codes label a run whose figures can be used. Each names something that limited or disturbed the run.
const (
	NoServerCounts Code = "no_server_counts"
	RedisBound     Code = "redis_bound"
	GeneratorBound Code = "generator_bound"
	BusyMachine    Code = "busy_machine"
	OtherCPU       Code = "other_cpu"
	Stolen         Code = "steal"
	ThroughProxies Code = "through_proxies"
	ShortOfARound  Code = "short_of_a_round"
	ShortWindow    Code = "short_window"
	EqualParts     Code = "equal_parts"
	Overloaded     Code = "overloaded"
	DriverTime     Code = "driver_time"
	OutlivedLease  Code = "outlived_lease"
	BeyondTimeout  Code = "beyond_timeout"
	WaitsNotEnded  Code = "waits_not_ended"
	// PartOfASession marks one generator's run in a session of several generators. The counts from Redis include the
	// commands of all generators, but the acquisitions are only those of this generator.
	PartOfASession Code = "part_of_a_session"
	OtherTraffic   Code = "other_traffic"
	CutShort       Code = "cut_short"
	BegunLate      Code = "begun_late"
	WindowsApart   Code = "windows_apart"
)

// Each of these codes reports a guarantee that the strategy claims but broke in a run.
const (
	Overlapped        Code = "overlapped"
	OverlappedApart   Code = "overlapped_apart"
	UpdatesLost       Code = "updates_lost"
	TokensRepeated    Code = "tokens_repeated"
	TokensBeforeOther Code = "tokens_repeated_apart"
)

// These codes are remarks about a whole report: warnings, the reasons why strategies were left out, and the results of
// thresholds.
const (
	RarelyMeant      Code = "rarely_meant"
	PreflightNote    Code = "preflight_note"
	StoreWarning     Code = "store_warning"
	NotClosed        Code = "not_closed"
	UnlikeDurability Code = "unlike_durability"
	AuditedApart     Code = "audited_apart"
	Unfit            Code = "unfit"
	FailedToRun      Code = "failed_to_run"

	NothingMatched  Code = "nothing_matched"
	NotMeasured     Code = "not_measured"
	NoValidRun      Code = "no_valid_run"
	FigureNotKnown  Code = "figure_not_known"
	OnlyLowerBound  Code = "only_lower_bound"
	LongestOfFew    Code = "longest_of_few"
	DurationsNotEnd Code = "durations_not_ended"
)

// These are the codes of the findings that package findings derives from the figures.
const (
	RunsNotTrusted   Code = "runs_not_trusted"
	RunsFailed       Code = "runs_failed"
	FaultsMissed     Code = "faults_missed"
	ClaimsBroken     Code = "claims_broken"
	Unclaimed        Code = "overlaps_unclaimed"
	LateHolders      Code = "late_holders"
	CounterLost      Code = "counter_lost"
	NotRecovered     Code = "not_recovered"
	KeysLeft         Code = "keys_left"
	NoTokens         Code = "no_tokens"
	UnsafeByDesign   Code = "unsafe_by_design"
	WaitsGivenUp     Code = "waits_given_up"
	ClientsServed    Code = "clients_served"
	FirstOf          Code = "first_of"
	AtItsCeiling     Code = "at_its_ceiling"
	CommandsGrow     Code = "commands_grow"
	CommandsCompared Code = "commands_compared"
	ErrorsMet        Code = "errors_met"
	TooFew           Code = "too_few"
	LockStoodStill   Code = "lock_stood_still"
	HoldsNotAsked    Code = "holds_not_as_asked"
	HoldsUnequal     Code = "holds_unequal"
	ThresholdPassed  Code = "threshold_passed"
	ThresholdCrossed Code = "threshold_crossed"
	Interrupted      Code = "interrupted"
	ReportError      Code = "report_error"
	NothingMeasured  Code = "nothing_measured"
)

// These codes are remarks about a comparison of two builds. They concern the builds, the results, or the way in which
// the builds were measured.
const (
	SameSession      Code = "same_session"
	RunLeftOut       Code = "run_left_out"
	ClaimBrokenIn    Code = "claim_broken_in"
	OneSideOnly      Code = "one_side_only"
	BaseBroken       Code = "base_broken"
	MachineTooBusy   Code = "machine_too_busy"
	SessionsApart    Code = "sessions_apart"
	NotInTurns       Code = "not_in_turns"
	TooFewSessions   Code = "too_few_sessions"
	BoundsOpen       Code = "bounds_open"
	TurnsUnknown     Code = "detectable_not_known_turns"
	BoundsUnknown    Code = "detectable_not_known_bounds"
	NoneButNoisy     Code = "none_but_noisy"
	DiffersButNoisy  Code = "differs_but_noisy"
	BudgetEnded      Code = "budget_ended"
	LookedAgain      Code = "looked_again"
	AloneNotMeasured Code = "alone_not_measured"
	ShortWindows     Code = "short_windows"
)

// coded is one row of coding, the table of remarks. In text, each variable part is a name in braces. For the code of a
// finding, text is only a topic; package findings writes the sentence from the figures of several runs.
type coded struct {
	code        Code
	severity    Severity
	text        string
	explanation string // appended to the text; begins with its separator
}

// coding lists every remark with its severity, its text and its explanation.
var coding = []coded{
	{NoWindow, SeverityInvalid, "{error}", ""},
	{SeenLate, SeverityInvalid, "it was observed for {seen} of a window of {window}: {cause}", ""},
	{StoodStill, SeverityInvalid, "lockbench did not run for {still} of {window}: it or its machine was stopped", ""},
	{Unbalanced, SeverityInvalid, "the phases of a client add up to {share} more or less than the window", ""},
	{PoolTimeouts, SeverityInvalid, "{commands} commands timed out waiting for a connection (see --pool)", ""},
	{LateStarts, SeverityInvalid, "the generator was late with {late} starts of {starts}", ""},
	{
		RateNotOffered, SeverityInvalid,
		"the generator could not offer {rate}: its goroutines waited {delay} to run (p99)", "",
	},
	{OnlyErrors, SeverityInvalid, "it made no acquisition and had errors: {error}", ""},
	{NoAcquisition, SeverityInvalid, "it made no acquisition", ""},
	{
		ManyErrors, SeverityInvalid,
		"{errors} errors for {acquisitions} acquisitions, above the limit of {limit}: {error}", "",
	},
	{FaultAbsent, SeverityInvalid, "the fault {fault} was not injected: {why}", ""},
	{
		DriverSilent, SeverityInvalid,
		"its driver did not report what {clients} of its clients did at the end of the window", "",
	},
	{ClientsHung, SeverityInvalid, "{clients} clients did not return when the run stopped", ""},
	{KeysLost, SeverityInvalid, "{way}: the lost keys may include locks", ""},
	{EndedEarly, SeverityInvalid, "it ended early: {error}", ""},
	{OtherServers, SeverityInvalid, "{generator} measured other servers", ""},
	{RecordMissing, SeverityInvalid, "{generator} {why}", ""},
	{NotTogether, SeverityInvalid, "its generators' windows were open together for {common} of {window}", ""},

	{NoServerCounts, SeverityNote, "window too short for the server's counters", ""},
	{RedisBound, SeverityCaution, "redis-bound", " (its command thread was busy for at least 90 % of the time)"},
	{
		GeneratorBound, SeverityCaution, "generator-bound",
		" (lockbench and its server kept the machine busy: the lock may be faster than shown)",
	},
	{BusyMachine, SeverityCaution, "busy machine", " (with other processes: use a quieter machine)"},
	{OtherCPU, SeverityCaution, "other CPU {share}", " (of all cores, by other processes: use a quieter machine)"},
	{Stolen, SeverityCaution, "steal {share}", " (of all cores, by other machines on the same hardware)"},
	{ThroughProxies, SeverityNote, "through proxies", " (network faults need proxies, which delay every command)"},
	{
		ShortOfARound, SeverityCaution,
		"window too short for one fair round: {served} acquisitions for {clients} clients; " +
			"--duration {longer} is long enough", "",
	},
	{
		ShortWindow, SeverityCaution,
		"window too short for one fair round: {served} acquisitions for {clients} clients", "",
	},
	{EqualParts, SeverityNote, "{instances} instances, the same number for each part", ""},
	{Overloaded, SeverityCaution, "overloaded: at {rate} too many arrivals found all {clients} clients waiting", ""},
	{DriverTime, SeverityCaution, "the driver itself took {share} of its clients' time", ""},
	{
		OutlivedLease, SeverityCaution, "held for longer than the lease: {longest} for a TTL of {ttl}",
		" (a client that works on after its lease ended is not protected)",
	},
	{
		BeyondTimeout, SeverityCaution,
		"{waits} lasted over {limit} longer than --timeout {timeout}; the longest ended after {longest}", "",
	},
	{WaitsNotEnded, SeverityCaution, "waits that the driver could not end left {keys}", ""},
	{
		PartOfASession, SeverityNote, "one of several generators",
		" (Redis's counts include all generators, the acquisitions only this one)",
	},
	{OtherTraffic, SeverityCaution, "other clients' traffic {share}", ""},
	{CutShort, SeverityCaution, "partial: {window}", ""},
	{BegunLate, SeverityCaution, "began {late} late", ""},
	{
		WindowsApart, SeverityCaution, "{share} of the generators' windows in common",
		" (the load was different outside the common part)",
	},

	{Overlapped, SeverityBroken, "exclusion: {overlaps} overlaps within valid leases", ""},
	{OverlappedApart, SeverityBroken, "exclusion: {overlaps} overlaps between generators", ""},
	{UpdatesLost, SeverityBroken, "exclusion: {updates} updates lost under the lock", ""},
	{TokensRepeated, SeverityBroken, "fencing: {tokens} tokens not larger than an earlier one", ""},
	{
		TokensBeforeOther, SeverityBroken,
		"fencing: {tokens} tokens not larger than an earlier one of another generator", "",
	},

	{RarelyMeant, SeverityCaution, "{setting}", ""},
	{PreflightNote, SeverityCaution, "{step}: {found}", ""},
	{StoreWarning, SeverityCaution, "{warning}", ""},
	{NotClosed, SeverityCaution, "{error}", ""},
	{
		UnlikeDurability, SeverityCaution,
		"a crash loses different amounts of the locks' data: {each} (see --durability)", "",
	},
	{
		AuditedApart, SeverityCaution,
		"{strategy}: the audit compares only clients of the same generator, because {why} (see --work counter)", "",
	},
	{Unfit, SeverityNote, "{why}", ""},
	{FailedToRun, SeverityCaution, "{error}", ""},
	{NothingMatched, SeverityCaution, "no measured strategy matches it", ""},
	{NotMeasured, SeverityCaution, "it was not measured", ""},
	{NoValidRun, SeverityCaution, "none of its runs can be trusted", ""},
	{FigureNotKnown, SeverityCaution, "the figure is not known", ""},
	{OnlyLowerBound, SeverityCaution, "only a lower bound is known", ""},
	{LongestOfFew, SeverityCaution, "the longest of {durations}", ""},
	{DurationsNotEnd, SeverityCaution, "{durations} had not ended", ""},

	{RunsNotTrusted, SeverityInvalid, "runs that cannot be trusted", ""},
	{RunsFailed, SeverityInvalid, "runs that ended early", ""},
	{FaultsMissed, SeverityCaution, "faults that were not injected", ""},
	{ClaimsBroken, SeverityBroken, "claims that did not hold", ""},
	{Unclaimed, SeverityBroken, "overlaps that broke no claim", ""},
	{LateHolders, SeverityBroken, "clients that worked under an expired lease", ""},
	{CounterLost, SeverityBroken, "lost updates of the counter or of the row", ""},
	{NotRecovered, SeverityBroken, "faults after which no client obtained the lock", ""},
	{KeysLeft, SeverityBroken, "leftovers on the servers", ""},
	{NoTokens, SeverityBroken, "late updates without fencing tokens", ""},
	{UnsafeByDesign, SeverityBroken, "the strategy's caveat", ""},
	{WaitsGivenUp, SeverityCaution, "the share of waits that timed out", ""},
	{ClientsServed, SeverityNote, "strategies that served every client, and the unserved clients of the others", ""},
	{FirstOf, SeverityNote, "the best strategy and its ratio to the next", ""},
	{AtItsCeiling, SeverityNote, "a lock that was held nearly all the time", ""},
	{CommandsGrow, SeverityNote, "commands that grow with the number of clients", ""},
	{CommandsCompared, SeverityNote, "the fewest and the most commands", ""},
	{ErrorsMet, SeverityCaution, "errors of Acquire and Release", ""},
	{TooFew, SeverityCaution, "too few durations for a p99", ""},
	{LockStoodStill, SeverityCaution, "a long time without a grant although clients waited", ""},
	{HoldsNotAsked, SeverityCaution, "mean holds that differ from the requested hold by over 3 %", ""},
	{HoldsUnequal, SeverityCaution, "mean holds that differ by over 3 %", ""},
	{ThresholdPassed, SeverityNote, "{threshold}", ""},
	{ThresholdCrossed, SeverityCaution, "{threshold}", ""},
	{Interrupted, SeverityInvalid, "interrupted: {measured}", ""},
	{ReportError, SeverityInvalid, "{error} ({measured})", ""},
	{NothingMeasured, SeverityInvalid, "nothing was measured", ""},

	{SameSession, SeverityNote, "{report}: the same session as {first}", ""},
	{RunLeftOut, SeverityCaution, "{run}: {why}", ""},
	{ClaimBrokenIn, SeverityBroken, "{run}: {claim}", ""},
	{OneSideOnly, SeverityCaution, "{strategy}: only the {side} measured it", ""},
	{BaseBroken, SeverityCaution, "the base already broke a claim: {claim}", ""},
	{
		MachineTooBusy, SeverityCaution,
		"{side}: in {limited} of {all} runs the machine, not the lock, limited the speed", "",
	},
	{
		SessionsApart, SeverityCaution,
		"the sessions were not recorded in turns, so a change may be one of the machine and is not reported; " +
			"ab takes turns", "",
	},
	{
		NotInTurns, SeverityCaution,
		"it differs, but the machine may be the cause: the sessions were not recorded in turns", "",
	},
	{TooFewSessions, SeverityCaution, "only {there}: {needed}{side} are needed for {tests}", ""},
	{
		BoundsOpen, SeverityCaution,
		"only lower bounds are known for {open} of {all} values, which leaves the verdict open", "",
	},
	{TurnsUnknown, SeverityCaution, "not significant, and the smallest detectable change is not known: " +
		"the sessions were not recorded in turns", ""},
	{BoundsUnknown, SeverityCaution, "not significant, and the smallest detectable change is not known: " +
		"some values are only lower bounds", ""},
	{
		NoneButNoisy, SeverityCaution,
		"not significant, but this session could have missed a change as large as the threshold", "",
	},
	{
		DiffersButNoisy, SeverityCaution,
		"it differs, but by less than the smallest change that this session detects reliably", "",
	},
	{BudgetEnded, SeverityCaution, "--budget {budget} ended {when}", ""},
	{LookedAgain, SeverityNote, "--until decided: test number {look} of the pairs, at the significance level {level}", ""},
	{AloneNotMeasured, SeverityCaution, "a single client was not measured: {why}", ""},
	{
		ShortWindows, SeverityCaution,
		"windows of {window} are too short to show waits: serving every client once takes {round}", "",
	},
}

var byCode = func() map[Code]coded {
	all := map[Code]coded{}
	for _, r := range coding {
		all[r.code] = r
	}
	return all
}()

func (c Code) row() coded { return byCode[c] }

// Severity returns the severity of the remarks with this code, from note to broken.
func (c Code) Severity() Severity { return c.row().severity }

// Explanation returns the explanation that follows the code's text; "" if the text needs none.
func (c Code) Explanation() string { return c.row().explanation }

// Codes returns all codes in the order of the table. texts[i] is the text of all[i], followed by its explanation.
func Codes() (all []Code, texts []string) {
	for _, r := range coding {
		all, texts = append(all, r.code), append(texts, r.text+r.explanation)
	}
	return all, texts
}

// parts splits the text at its names in braces: names[i] stands between words[i] and words[i+1].
func (r coded) parts() (words, names []string) {
	for rest, more := r.text, true; more; {
		var word, name string
		word, rest, more = strings.Cut(rest, "{")
		words = append(words, word)
		if more {
			name, rest, _ = strings.Cut(rest, "}")
			names = append(names, name)
		}
	}
	return words, names
}

// Guarantee returns the guarantee that the code reports as broken: "exclusion" or "fencing". For any other code it
// returns "".
func (c Code) Guarantee() string {
	switch c {
	case Overlapped, OverlappedApart, UpdatesLost:
		return "exclusion"
	case TokensRepeated, TokensBeforeOther:
		return "fencing"
	}
	return ""
}

// SetsThePace reports whether the code means that the machine, not the lock, limited the speed.
func (c Code) SetsThePace() bool {
	switch c {
	case GeneratorBound, BusyMachine, OtherCPU, Stolen:
		return true
	}
	return false
}
