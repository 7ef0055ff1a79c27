#!/bin/sh
# make demo: builds lockbench and runs the main job, six strategies with 500 clients.
#
# If redis-server is installed, it builds with the tag redisonly, without the clients of etcd, PostgreSQL, ZooKeeper and
# containers, which are more than half of the build. If bin/lockbench already is a full build, it stays one.
set -eu
cd "$(dirname "$0")/.."

tags=
if command -v redis-server >/dev/null || command -v valkey-server >/dev/null; then
	if ! bin/lockbench version 2>/dev/null | grep -qv redisonly; then tags=redisonly; fi
fi
echo "make demo: a first build takes a minute or two on two cores" >&2
"${GO:-go}" build -ldflags=-w -tags="$tags" -o bin/lockbench ./cmd/lockbench
set -x
bin/lockbench --strategy spin,pubsub,blpop,redsync,handoff,cohort --clients 500 --instances 10 --hold 1ms \
	--warmup 1s --duration 4s --output table --output json=demo.json "$@"
bin/lockbench report demo.json -o demo.html
{ set +x; } 2>/dev/null
if [ -n "$tags" ]; then
	echo "make demo: bin/lockbench supports only Redis: make build adds etcd, PostgreSQL, ZooKeeper and containers" >&2
fi
