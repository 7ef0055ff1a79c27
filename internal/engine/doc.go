// Package engine lets the clients of a workload contend for a lock and records the results.
//
// Read the files in this order. They record their observations with package measure.
//
//   - job.go: a Job, Job.Run with its phases one after the other, and run, the state of a Job under way.
//   - instance.go: an application instance, with its connections and its Locker. try.go: Job.Try, which checks a lock
//     before any run.
//   - start.go: prepares and starts all clients, alone or with other generators, and measures idle connections.
//   - client.go: what a client does in a cycle. acquire.go: one acquisition. counter.go: a holder's increment of a
//     counter. errors.go: counts the errors of clients and readings.
//   - arrivals.go, herd.go: when clients start their cycles, with --rate and with --burst.
//   - drive.go, local.go, replay.go: clients that a driver's process runs, in another language, and their cycles.
//   - faults.go: the faults of the workload. Its first comment describes clientfaults.go, target.go, wire.go,
//     precedence.go, and faultlog.go.
//   - observe.go: the window, with a reading of the servers at both ends and each second. heartbeat.go: ends a run
//     whose servers no longer reply.
//   - finish.go: stops and drains the clients, checks for leftovers, and removes the keys.
//   - summary.go: computes the results.Run from all records. labels.go: reasons why a run is invalid, and cautions.
package engine
