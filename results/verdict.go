package results

// Verdict is a judgement, in a word or two, of a claim, a comparison, or a figure or check that has a limit. Each
// package that judges defines the verdicts that it uses. The way a wait ended is not a verdict: see measure.Outcome.
// The conformance suite (locktest) defines its own Verdict, because it does not depend on reports.
type Verdict string

// Inconclusive means that no judgement is possible: nothing was measured, or the measurement cannot be trusted. A
// comparison that more sessions may decide is undecided instead (package compare).
const Inconclusive Verdict = "inconclusive"
