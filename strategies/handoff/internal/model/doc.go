// Package model is the argument of ../../DESIGN.md in a form that a computer can try. It has
// only tests.
//
// A world is one lock at a server, two processes with three clients, and all that is on its
// way between them. server_test.go implements SET, RPUSHX and the scripts again, in Go;
// process_test.go, lease_test.go and look_test.go implement what a process does, with local
// passing, places, debts, looks and confirmations; step_test.go lists what may happen next.
// search_test.go visits every world that can be reached, the nearest first. It checks that at
// most one client holds the lock, that no token falls or comes twice, that no valid lease is
// called lost, and that everybody can still be served. After a fault that must not need a wait
// for a lease that nobody has; without a fault it must not need a look. The test prints the
// shortest way to a violation. It must also find planted mistakes, which were made once or
// could be made.
//
// replay_test.go ties the model to the real lock. It plays every command in every small state,
// and random walks through the model with every fault, on real servers with the scripts of this
// repository. After each step both must agree on the answer, the lock with its mark, the queue,
// who was told, and what has a TTL; tokens must be in the same order. Mistakes planted in the
// model's scripts must show there, too.
//
// With LOCKBENCH_MODEL=1 the tests search further, for minutes: they then search most of the
// faults with three clients to the end.
//
// # What it does not have
//
//   - Only the Lua is tied to the model; the Go of the processes is not. Whoever changes the Go
//     must change the model by hand, and the Go may be wrong where the model is right.
//   - A TTL is one tick, so a lease is either new or over. Worlds in which time passes are
//     searched for two processes with one client each, two ticks and few looks, and every day
//     only in part. The search checks only exclusion and tokens there, not whether everybody is
//     served. Elsewhere no time passes, except for the leases of the dead.
//   - "Can be served" means that some continuation serves everybody, not that each does. The
//     search does not check order and overtaking.
//   - There is one fault at a time (two where a test says so), of one process. A broken
//     connection affects one command, which is lost, late or without its answer; in truth it
//     affects all commands on it.
//   - After a failover the old primary is an exact copy that refuses writes: there is no lag, and
//     no loss of data. Sentinel, cluster slots, MOVED and CLUSTERDOWN are missing.
//   - Close, ends of patience (2 s), TryAcquire, a queue's TTL of 10 min, and clocks that go back
//     are missing. SIGSTOP only makes a process slow: no lease loses its place by it.
//   - Where no answer can be lost, running a command and reading an answer that gives nothing are
//     one step. Worlds are known by hashes of 64 bits. The search does not follow a world with
//     more on its way than there is room for (4 debts, 6 entries, 3 messages, 2 late commands).
package model
