#!/bin/sh
# make race: runs the tests of locks in all variants, and of the engine, under the race detector, which needs a C
# compiler.
#
# It covers the locks and the packages that run and measure them. It omits locks whose work another program does, the
# model of handoff, and strategies/goredis, because go-redis 9.23 has a data race when a client that routes by latency
# pings.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
command -v "$("$go" env CC)" >/dev/null || { echo "make race: the race detector needs a C compiler: install gcc" >&2; exit 1; }

locks=$("$go" list ./strategies/... |
	grep -vE '/strategies/(all|goredis|locktest|peers|etcd|postgres|zookeeper|handoff/model)(/|$)')
# shellcheck disable=SC2086 # several packages
CGO_ENABLED=1 LOCKBENCH_CONFORM=variants "$go" test -race -vet=off $LOCKBENCH_TEST_TAGS -p 3 -timeout 20m \
	./internal/engine ./internal/measure ./internal/launch ./internal/pause ./internal/watch \
	./internal/store/redis/barrier $locks
