#!/bin/bash
# make valkey: runs tests of clusters, costs, tokens and the rights of every strategy on Valkey 9, or else on Valkey 8,
# from the packages of a newer Debian (docker/other-server.sh). It then tests the release by DELEX on Redis 8.4 or later
# from Debian's experimental packages. VALKEY is the folder in which the servers are kept.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
kept=${VALKEY:-${XDG_CACHE_HOME:-$HOME/.cache}/lockbench/valkey}
tests='^(TestCluster|TestCostAlone|TestReplicas|TestRights|TestWithoutInfo|TestOnlyItsToken.*|TestExtend|TestErrors|TestReleaseByCommand.*)$'
race=
if command -v "$("$go" env CC)" >/dev/null; then race=-race; fi

# run SERVER TESTS PACKAGE...
run() {
	local server=$1 tests=$2
	shift 2
	echo "on $server"
	# shellcheck disable=SC2086 # an empty $race must give no argument
	CGO_ENABLED=${race:+1} LOCKBENCH_REDIS_SERVER=$server LOCKBENCH_CONFORM=variants \
		"$go" test $race -vet=off $LOCKBENCH_TEST_TAGS -count=1 -run "$tests" "$@"
}

server=
for suite in forky trixie; do
	if server=$(docker/other-server.sh valkey-server "$suite" "$kept/$suite"); then break; fi
	server=
done
if [ -z "$server" ]; then
	echo "make valkey: no Valkey could be installed, so its tests did not run" >&2
else
	run "$server" "$tests" ./internal/store/redis/servers ./strategies/all ./strategies/polled ./strategies/internal \
		./strategies/handoff
fi
if server=$(docker/other-server.sh redis-server experimental "$kept/redis"); then
	run "$server" '^TestReleaseByCommand' ./strategies/polled
else
	echo "make valkey: no Redis with DELEX could be installed, so its tests did not run" >&2
fi
