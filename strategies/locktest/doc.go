// Package locktest is the conformance suite: it tests the claims in a lock's Info on real servers.
//
// A test calls Run, which runs one subtest per check. This example tests a lock on a Redis server at addr. No other
// program may use that server during the test, because the suite kills connections and flushes the script cache:
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
// A command calls Judge, which returns a Result for each check. Checks lists the checks and what each of them proves.
// Every failure names the broken promise and the observation that shows it. A check never passes if the Fixture lacks
// what it needs or if it reaches no verdict; its Result gives the reason. A run does not try checks that rely on a
// broken basic promise.
//
// Read the files in this order:
//
//   - locktest.go: the Fixture, which a test fills in, and Run. suite.go: all checks, one row each, with the check's
//     function and the claims that a lock must have for it. verdict.go: the Result of a check. foundation.go: the
//     checks that a run does not try after a broken basic promise.
//   - stage.go: the stage, with which a check opens instances, acquires, releases and reports. waiter.go: a call in
//     the background of a check. leftovers.go: keys, channels and connections that a lock leaves.
//   - basics.go, leases.go, waiting.go: the checks of locks on healthy servers, from a free lock to cancelled waits.
//     subscriptions.go: the checks of a lock that learns of releases from messages. forged_messages.go: messages of
//     other clients.
//   - trouble.go, hanging.go, server_faults.go: servers that forget, stop, hang, or die. network_faults.go: connections
//     that break, or deliver late, at each step of a call.
//   - history.go: the history of concurrent clients' calls, and the test whether a correct lock could have produced it.
//     The chaos test of package handoff uses both.
//
// Each check is a function whose only argument is the stage. The function reports failures and ends the check with
// methods of the stage.
package locktest
