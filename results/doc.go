// Package results holds the Report, a plain, versioned document of what was measured, and the ways to show it. It never
// talks to Redis.
//
// An unknown figure is a nil pointer, null in JSON and "–" in tables. It is never 0.
//
// Read the files in this order, which follows a figure from a run to a table:
//
//   - report.go: the Report, with what was run, where, and how. run.go: a Run, with all that is measured in its
//     window. server.go: what the servers counted for it. json.go: writing and reading JSON.
//   - record.go: the Record, the part of a Run from which its figures are computed, and Run.Compute, which does so.
//     distribution.go, histogram.go, survival.go: durations, including censored ones.
//   - codes.go, remark.go, phrase.go: remarks about figures, each with a code. verdict.go: judgements of figures,
//     checks and comparisons. symptom.go: results of the preflight.
//   - metrics.go: each metric as one row, with the path to its figure. units.go: how a figure is formatted.
//   - statistics.go: medians, intervals and ratios of rounds. summary.go: a strategy's rounds as one Summary.
//   - tables.go: the columns of all tables, and their groups. conditions.go: the lines above the tables.
//   - threshold.go: limits that a user sets, and the check of figures against them.
//   - merge.go, leases.go: merging the records of several generators into one report.
//
// The packages below it, such as render, compare, findings and html, only read these types.
package results
