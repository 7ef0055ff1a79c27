// Package model is the argument of ../../DESIGN.md in a form that a computer can try. It has
// only tests.
//
// A world is one lock at a server, two processes with three clients, and all that is under
// way between them. server_test.go writes SET, RPUSHX and the scripts anew in Go;
// process_test.go, lease_test.go and look_test.go write anew what a process does, with local passing, places,
// debts, looks and confirmations; step_test.go lists what may happen next. search_test.go
// visits every world that can be reached, the nearest first, and asks of each: does more than
// one hold the lock, does a token fall or come twice, is a valid lease called lost, can everybody
// still be served: after a fault, without waiting for a lease that nobody has; without one,
// without anybody's look. The shortest way to what must not be is printed. Mistakes that were
// made, or could be, are planted, and must be found.
//
// What ties it to the real lock is replay_test.go. Every command in every small state, and
// random walks through the model with every fault, are played on real servers with the scripts
// of this repository. After each step the answer, the lock with its mark, the queue, who was
// told, and what has a TTL must be the same; tokens must be in the same order. What is planted
// in the model's scripts must show there, too.
//
// With LOCKBENCH_MODEL=1 the tests look further, for minutes: most of the faults with three
// clients are then searched to the end.
//
// # What it does not have
//
//   - Only the Lua is tied to the model; the Go of the processes is not. Where that is changed
//     the model must be changed by hand, and what the model has right the Go may have wrong.
//   - A TTL is one tick, so a lease is either new or over. Worlds in which time passes are
//     searched for two processes with one client each, two ticks and few looks, and every day only
//     in part; there only exclusion and tokens are looked at, not whether everybody is served.
//     Elsewhere no time passes, but for the leases of the dead.
//   - "Can be served" means that some continuation serves everybody, not that each does. Order
//     and overtaking are not looked at.
//   - One fault at a time (two where a test says so), of one process. Of a broken connection one
//     command is lost, late or without its answer; in truth all of it are.
//   - After a failover the old primary is an exact copy that refuses writes: there is no lag, and
//     no loss of data. Nothing of Sentinel and of cluster slots, MOVED or CLUSTERDOWN.
//   - Close, ends of patience (2 s), TryAcquire, a lease's own loss of its place by SIGSTOP other
//     than as slowness, a queue's TTL of 10 min, and clocks that go back.
//   - Heeding an answer that gives nothing is one step with carrying it out, where no answer
//     can be lost. Worlds are known by hashes of 64 bits. Where a world has more under way than
//     there is room for (4 debts, 6 entries, 3 messages, 2 late commands) it is not followed.
package model
