package results

// Verdict is a one-word judgement of a figure or check against its limit, of a claim, or of a comparison. Each package
// that judges defines the verdicts that it uses. The way a wait ended is not a verdict: see measure.Outcome. The
// conformance suite (locktest) defines its own Verdict, because it does not depend on reports.
type Verdict string

// Inconclusive means that no judgement is possible: nothing was measured, or the measurement cannot be trusted. A
// comparison that more sessions may decide is undecided instead (package compare).
const Inconclusive Verdict = "inconclusive"
