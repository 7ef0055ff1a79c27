package results

import "strings"

// Read this file as one table: it has every remark, with its code, its severity, its text and what the text means. The
// documentation has the same table (docs/VALIDITY.md).

// Code names a remark in JSON and in code.
type Code string

// Why the figures of a run cannot be trusted.
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

// The labels of a run.
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
	// PartOfASession is of a run with several generators: Redis's counts include all of them, the acquisitions are only
	// this generator's.
	PartOfASession Code = "part_of_a_session"
	OtherTraffic   Code = "other_traffic"
	CutShort       Code = "cut_short"
	BegunLate      Code = "begun_late"
	WindowsApart   Code = "windows_apart"
)

// The claims that a lock broke in a run.
const (
	Overlapped        Code = "overlapped"
	OverlappedApart   Code = "overlapped_apart"
	UpdatesLost       Code = "updates_lost"
	TokensRepeated    Code = "tokens_repeated"
	TokensBeforeOther Code = "tokens_repeated_apart"
)

// What a report says of its runs: warnings, what was left out, and thresholds.
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

// What figures show, see the package findings.
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

// What a comparison says of its sides and results.
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

// coded is a remark in the table. text has the name of each part that differs in braces; of a finding, which is made of
// what several runs show, it only says what the finding is about.
type coded struct {
	code        Code
	severity    Severity
	text        string
	explanation string // behind the text, with what separates them
}

// coding is the table.
var coding = []coded{
	{NoWindow, SeverityInvalid, "{error}", ""},
	{SeenLate, SeverityInvalid, "it was observed for {seen} of a window of {window}: {cause}", ""},
	{
		StoodStill, SeverityInvalid,
		"lockbench itself did not run for {still} of {window}: it was stopped, or its machine was", "",
	},
	{
		Unbalanced, SeverityInvalid,
		"its time accounts do not balance: a client's phases differ from the window by {share}", "",
	},
	{PoolTimeouts, SeverityInvalid, "{commands} commands timed out waiting for a connection (see --pool)", ""},
	{LateStarts, SeverityInvalid, "the generator was late with {late} starts of {starts}", ""},
	{
		RateNotOffered, SeverityInvalid,
		"the generator could not offer {rate}: its goroutines waited {delay} to run (p99)", "",
	},
	{OnlyErrors, SeverityInvalid, "it had errors and not one acquisition: {error}", ""},
	{NoAcquisition, SeverityInvalid, "it had not one acquisition", ""},
	{ManyErrors, SeverityInvalid, "{errors} errors for {acquisitions} acquisitions, over {limit}: {error}", ""},
	{FaultAbsent, SeverityInvalid, "the fault {fault} was not injected: {why}", ""},
	{DriverSilent, SeverityInvalid, "its driver does not say what {clients} of its clients did at the end", ""},
	{ClientsHung, SeverityInvalid, "{clients} clients did not return when the run stopped", ""},
	{KeysLost, SeverityInvalid, "{way}: locks may have been among the keys that it lost", ""},
	{EndedEarly, SeverityInvalid, "it ended early: {error}", ""},
	{OtherServers, SeverityInvalid, "{generator} measured other servers", ""},
	{RecordMissing, SeverityInvalid, "{generator} {why}", ""},
	{NotTogether, SeverityInvalid, "its generators' windows were open together for {common} of {window}", ""},

	{NoServerCounts, SeverityNote, "window too short for the server's counters", ""},
	{
		RedisBound, SeverityCaution, "redis-bound",
		" (the thread that executes commands was busy for at least 90 % of the time)",
	},
	{
		GeneratorBound, SeverityCaution, "generator-bound",
		" (the machine was busy with lockbench and its server: the lock may be faster than shown)",
	},
	{
		BusyMachine, SeverityCaution, "busy machine",
		" (busy with something other than lockbench and Redis: measure on a quieter one)",
	},
	{
		OtherCPU, SeverityCaution, "other CPU {share}",
		" (of all cores, by neither lockbench nor Redis: measure on a quieter machine)",
	},
	{Stolen, SeverityCaution, "steal {share}", " (of all cores, by other machines on the same hardware)"},
	{
		ThroughProxies, SeverityNote, "through proxies",
		" (for the sake of the network's faults, and slower than without)",
	},
	{
		ShortOfARound, SeverityCaution,
		"window too short for one fair round: {served} acquisitions for {clients} clients, --duration {longer} is not", "",
	},
	{
		ShortWindow, SeverityCaution,
		"window too short for one fair round: {served} acquisitions for {clients} clients", "",
	},
	{EqualParts, SeverityNote, "in {instances} instances, as many of each part", ""},
	{Overloaded, SeverityCaution, "overloaded: {rate} found all {clients} clients waiting", ""},
	{DriverTime, SeverityCaution, "the driver itself took {share} of its clients' time", ""},
	{
		OutlivedLease, SeverityCaution, "held for longer than the lease: {longest} for a TTL of {ttl}",
		" (what is claimed holds until the lease ends: who works on after that is no longer protected, " +
			"and overlaps after expiry break no claim)",
	},
	{
		BeyondTimeout, SeverityCaution,
		"{waits} went on for over {limit} beyond --timeout {timeout}, the longest ended after {longest}", "",
	},
	{WaitsNotEnded, SeverityCaution, "left {keys} of waits that the driver could not end", ""},
	{
		PartOfASession, SeverityNote, "one of several generators",
		" (what Redis counted is all of theirs, divided by this one's acquisitions)",
	},
	{OtherTraffic, SeverityCaution, "other clients' traffic {share}", ""},
	{CutShort, SeverityCaution, "partial: {window}", ""},
	{BegunLate, SeverityCaution, "begun {late} late", ""},
	{
		WindowsApart, SeverityCaution, "generators' windows {share} in common",
		" (what one of them recorded outside the common part counts too, under another load)",
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
		"a crash does not lose equally much of the locks: {each}: --durability compares like with like", "",
	},
	{AuditedApart, SeverityCaution, "{strategy}: the audit is of each generator's own clients, because {why}; " +
		"--work counter shows whether all exclude each other", ""},
	{Unfit, SeverityNote, "{why}", ""},
	{FailedToRun, SeverityCaution, "{error}", ""},
	{NothingMatched, SeverityCaution, "nothing that it is about was measured", ""},
	{NotMeasured, SeverityCaution, "it was not measured", ""},
	{NoValidRun, SeverityCaution, "no run of it can be trusted", ""},
	{FigureNotKnown, SeverityCaution, "the figure is not known", ""},
	{OnlyLowerBound, SeverityCaution, "only a lower bound is known", ""},
	{LongestOfFew, SeverityCaution, "the longest of {durations}", ""},
	{DurationsNotEnd, SeverityCaution, "{durations} had not ended", ""},

	{RunsNotTrusted, SeverityInvalid, "runs that cannot be trusted, and why", ""},
	{RunsFailed, SeverityInvalid, "runs that ended early, and why", ""},
	{FaultsMissed, SeverityCaution, "faults that were not injected", ""},
	{ClaimsBroken, SeverityBroken, "what the strategy claims and broke", ""},
	{Unclaimed, SeverityBroken, "overlaps of a strategy that broke no claim", ""},
	{LateHolders, SeverityBroken, "clients that still worked under a lease that had run out", ""},
	{CounterLost, SeverityBroken, "lost updates of the counter", ""},
	{NotRecovered, SeverityBroken, "faults after which no client got the lock", ""},
	{KeysLeft, SeverityBroken, "keys, channels and connections that were left", ""},
	{NoTokens, SeverityBroken, "late holders without fencing tokens wrote", ""},
	{UnsafeByDesign, SeverityBroken, "the strategy's caveat", ""},
	{WaitsGivenUp, SeverityCaution, "the share of the waits that ended at their timeout", ""},
	{ClientsServed, SeverityNote, "which strategies served every client, and how many the others did not", ""},
	{FirstOf, SeverityNote, "the best strategy, and whether the difference is certain", ""},
	{AtItsCeiling, SeverityNote, "a lock that was held nearly all the time", ""},
	{CommandsGrow, SeverityNote, "commands for an acquisition that grow with the clients", ""},
	{CommandsCompared, SeverityNote, "the fewest and the most commands for an acquisition", ""},
	{ErrorsMet, SeverityCaution, "errors of Acquire and Release", ""},
	{TooFew, SeverityCaution, "too few durations for a 99th percentile", ""},
	{LockStoodStill, SeverityCaution, "no grant for a long part of a window although clients waited", ""},
	{HoldsNotAsked, SeverityCaution, "mean holds over 3 % off what was asked", ""},
	{HoldsUnequal, SeverityCaution, "mean holds that differ by over 3 %", ""},
	{ThresholdPassed, SeverityNote, "{threshold}", ""},
	{ThresholdCrossed, SeverityCaution, "{threshold}", ""},
	{Interrupted, SeverityInvalid, "interrupted: {measured}", ""},
	{ReportError, SeverityInvalid, "{error} ({measured})", ""},
	{NothingMeasured, SeverityInvalid, "nothing was measured", ""},

	{SameSession, SeverityNote, "{report}: the same session as {first}", ""},
	{RunLeftOut, SeverityCaution, "{run}: {why}", ""},
	{ClaimBrokenIn, SeverityBroken, "{run}: {claim}", ""},
	{OneSideOnly, SeverityCaution, "{strategy}: only the {side} has it", ""},
	{BaseBroken, SeverityCaution, "a claim was broken in the base already: {claim}", ""},
	{
		MachineTooBusy, SeverityCaution,
		"{side}: {limited} of {all} runs on a machine too busy to show what the lock can do", "",
	},
	{SessionsApart, SeverityCaution, "the sessions were not recorded in turns: what changed on the machine in between " +
		"would count as a change, so none is called; ab takes turns", ""},
	{
		NotInTurns, SeverityCaution,
		"it differs, but the sessions were not recorded in turns: that may be the machine's doing", "",
	},
	{TooFewSessions, SeverityCaution, "{there}, {needed}{side} are needed for {tests}", ""},
	{
		BoundsOpen, SeverityCaution,
		"of {open} of {all} only lower bounds are known, and they leave the verdict open", "",
	},
	{TurnsUnknown, SeverityCaution, "not significant, but how large a change would have been is not known: " +
		"the sessions were not recorded in turns", ""},
	{BoundsUnknown, SeverityCaution, "not significant, but how large a change would have been is not known: " +
		"some values are only lower bounds", ""},
	{
		NoneButNoisy, SeverityCaution,
		"not significant, but this session would have missed a change of the threshold", "",
	},
	{
		DiffersButNoisy, SeverityCaution,
		"it differs, but by less than a change that this session would have detected reliably", "",
	},
	{BudgetEnded, SeverityCaution, "--budget {budget} ended {when}", ""},
	{
		LookedAgain, SeverityNote,
		"--until decided: look {look} at the pairs, at the level {level}, half of that of the look before", "",
	},
	{AloneNotMeasured, SeverityCaution, "one client alone was not measured: {why}", ""},
	{
		ShortWindows, SeverityCaution,
		"windows of {window} show no waits: to serve every client once takes {round}", "",
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

// Severity returns the severity of the code's remarks.
func (c Code) Severity() Severity { return c.row().severity }

// Explanation is what a reader adds to the text if the text is not clear by itself.
func (c Code) Explanation() string { return c.row().explanation }

// Codes returns all codes in the order of the table, with their texts.
func Codes() (all []Code, texts []string) {
	for _, r := range coding {
		all, texts = append(all, r.code), append(texts, r.text+r.explanation)
	}
	return all, texts
}

// parts returns the words of the text, and the names between them.
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

// Guarantee is the claim that the code's remarks are about; "" if they are about none.
func (c Code) Guarantee() string {
	switch c {
	case Overlapped, OverlappedApart, UpdatesLost:
		return "exclusion"
	case TokensRepeated, TokensBeforeOther:
		return "fencing"
	}
	return ""
}

// SetsThePace says whether the code's remarks mean that the machine, not the lock, limited the speed.
func (c Code) SetsThePace() bool {
	switch c {
	case GeneratorBound, BusyMachine, OtherCPU, Stolen:
		return true
	}
	return false
}
