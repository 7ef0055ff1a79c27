package results

// Verdict is a judgement in one word: on a figure or a check that has a limit, on a claim, on a comparison. The package
// that judges has the words that it uses. How a wait ended is no judgement: see measure.Outcome. The conformance suite
// has a Verdict of its own (locktest), because a lock's test needs nothing of a report.
type Verdict string

// Inconclusive means that there is no judgement: nothing was measured, or it cannot be trusted. A comparison that more
// sessions may decide is undecided (package compare).
const Inconclusive Verdict = "inconclusive"
