// Package locktest is the conformance suite: it tests on real servers what a lock claims in
// its Info.
//
// A test calls Run, which runs one subtest per check. This example tests a lock on a Redis
// server at addr. Nobody else may use that server meanwhile, because the suite kills
// connections and flushes the script cache:
//
//	func TestConformance(t *testing.T) {
//		locktest.Run(t, func(t *testing.T) locktest.Fixture {
//			return locktest.Fixture{
//				Open: func(c goredis.Config) (strategies.Locker, error) { return mylock.Open(c) },
//				Nodes: func() []goredis.Node {
//					return []goredis.Node{{Options: &redis.UniversalOptions{Addrs: []string{addr}}}}
//				},
//			}
//		}, strategies.Info{
//			Name: "mylock", Capacity: 1, Nodes: 1,
//			Claims: strategies.Claims{Exclusion: true, Recovery: true},
//		})
//	}
//
// A command calls Judge, which returns a Result for each check. Checks lists the checks and what each of them
// proves. Every failure names the broken promise and what the check saw of it. A check that the Fixture does not
// allow, or that comes to no verdict, says so and never passes.
//
// Read the files in this order:
//
//   - locktest.go: the Fixture, which a test fills in, and Run. suite.go: all checks, one row each, with the function
//     that carries it out, and what a lock must have for it. verdict.go: the Result of a check.
//   - stage.go: what a check plays on, a stage: it opens instances, acquires, releases, and reports. waiter.go: a call
//     that waits while the check goes on. leftovers.go: what a lock leaves on the servers.
//   - basics.go, leases.go, waiting.go: the checks of locks on healthy servers, from a free lock to cancelled waits.
//     subscriptions.go: those of a lock that learns of releases by messages. forged_messages.go: messages of others.
//   - trouble.go, hanging.go, server_faults.go: servers that forget, stop, hang, or die. network_faults.go: connections
//     that break, or deliver late, at each step of a call.
//   - history.go: what concurrent clients did, and whether a lock explains it; handoff's chaos test uses it too.
//
// A function of a check takes the stage alone, and ends the check through it.
package locktest
