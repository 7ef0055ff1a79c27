// Package results holds the Report, the plain versioned document of what was
// measured, and the ways to show it. It never talks to Redis.
//
// An unknown figure is a nil pointer, null in JSON and "–" in tables. It is never 0.
//
// Read the files in this order, which is the way of a figure from a run to a table:
//
//   - report.go: the Report, with what was run, where, and how. run.go: a Run, with all that is measured in its
//     window. server.go: what the servers counted for it. json.go: both ways to JSON.
//   - record.go: the Record, the part of a Run from which its figures are computed, and Run.Compute, which does so.
//     distribution.go, histogram.go, survival.go: durations, with those whose end was not seen.
//   - codes.go, remark.go, phrase.go: what a run, a report or a table says of its figures, by codes. verdict.go,
//     symptom.go: the judgement of a check, and what a server says of itself.
//   - metrics.go: each metric as one row, with the way to its figure. units.go: how a figure is written.
//   - statistics.go: medians, intervals and ratios of rounds. summary.go: a strategy's rounds as one Summary.
//   - tables.go: the columns of all tables, and their groups. conditions.go: the lines above the tables.
//   - threshold.go: limits that a user sets, and whether figures keep them.
//   - merge.go, leases.go: one report of what several generators recorded.
//
// The packages below it, as render, compare, findings and html, only read these types.
package results
