#!/bin/bash
# make valkey: part of the tests on Valkey 9, else on Valkey 8, from the packages of a newer Debian (docker/other-server.sh):
# clusters, costs, the rights of every strategy, and tokens. VALKEY is the folder that keeps the server.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
kept=${VALKEY:-${XDG_CACHE_HOME:-$HOME/.cache}/lockbench/valkey}
tests='^(TestCluster|TestCostAlone|TestReplicas|TestRights|TestWithoutInfo|TestOnlyItsToken.*|TestExtend|TestErrors|TestReleaseByCommand.*)$'

server=
for suite in forky trixie; do
	if server=$(docker/other-server.sh valkey-server "$suite" "$kept/$suite"); then break; fi
	server=
done
if [ -z "$server" ]; then
	echo "make valkey: no Valkey is available here, so nothing was tested on it" >&2
	exit
fi
race=
if command -v "$("$go" env CC)" >/dev/null; then race=-race; fi
echo "on $server"
# shellcheck disable=SC2086 # no race detector is no argument
CGO_ENABLED=${race:+1} LOCKBENCH_REDIS_SERVER=$server LOCKBENCH_CONFORM=variants \
	"$go" test $race -vet=off $LOCKBENCH_TEST_TAGS -count=1 -run "$tests" \
	./internal/store/redis/servers ./strategies/all ./strategies/polled ./strategies/internal ./strategies/handoff
