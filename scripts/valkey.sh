#!/bin/bash
# make valkey: part of the tests on Valkey 9, else on Valkey 8, from the packages of a newer Debian (docker/other-server.sh):
# clusters, costs, the rights of every strategy, and tokens. The release by DELEX then runs on Redis 8.4 or later from
# Debian's experimental packages. VALKEY is the folder that keeps the servers.
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
	# shellcheck disable=SC2086 # no race detector is no argument
	CGO_ENABLED=${race:+1} LOCKBENCH_REDIS_SERVER=$server LOCKBENCH_CONFORM=variants \
		"$go" test $race -vet=off $LOCKBENCH_TEST_TAGS -count=1 -run "$tests" "$@"
}

server=
for suite in forky trixie; do
	if server=$(docker/other-server.sh valkey-server "$suite" "$kept/$suite"); then break; fi
	server=
done
if [ -z "$server" ]; then
	echo "make valkey: no Valkey is available here, so nothing was tested on it" >&2
else
	run "$server" "$tests" ./internal/store/redis/servers ./strategies/all ./strategies/polled ./strategies/internal \
		./strategies/handoff
fi
if server=$(docker/other-server.sh redis-server experimental "$kept/redis"); then
	run "$server" '^TestReleaseByCommand' ./strategies/polled
else
	echo "make valkey: no Redis with DELEX is available here, so nothing was tested on it" >&2
fi
