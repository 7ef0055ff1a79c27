#!/bin/sh
# Measures with three generators in a Docker Swarm, and prints their report. On one machine, without LOCKBENCH_REDIS,
# it needs redis-server: it makes a swarm of this machine, and a Redis that keeps nothing, and removes both.
# CLIENTS and DURATION are those of the stack.
set -eu
cd "$(dirname "$0")/../.."

cleanup() {
	if [ -n "${deployed:-}" ]; then
		docker stack rm lockbench >/dev/null 2>&1 || true
		docker ps -aq --filter label=com.docker.stack.namespace=lockbench | xargs -r docker rm -f >/dev/null || true
	fi
	if [ -n "${server:-}" ]; then kill "$server" && wait "$server" || true; fi
	if [ -n "${ours:-}" ]; then docker swarm leave --force >/dev/null || true; fi
	rm -rf "$build"
}
build=$(mktemp -d)
trap cleanup EXIT
trap 'exit 130' INT TERM

say() { echo "run.sh: $*" >&2; }

say "building the image"
CGO_ENABLED=0 ${GO:-go} build -o "$build/lockbench" ./cmd/lockbench
docker build -q -f docker/lockbench.Dockerfile -t lockbench:local "$build" >/dev/null
if [ "$(docker info -f '{{.Swarm.LocalNodeState}}')" = inactive ]; then
	ours=yes
	docker swarm init --advertise-addr 127.0.0.1 --listen-addr 127.0.0.1 >/dev/null
fi
if [ -z "${LOCKBENCH_REDIS:-}" ]; then
	port=${PORT:-16379}
	redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no --daemonize no >/dev/null &
	server=$!
	export LOCKBENCH_REDIS="redis://127.0.0.1:$port"
fi
if docker service inspect lockbench_generators >/dev/null 2>&1; then
	echo "there is a stack lockbench already" >&2
	exit 1
fi
deployed=yes
say "deploying the generators"
docker stack deploy --resolve-image never -c deploy/swarm/stack.yaml lockbench >/dev/null 2>&1

# A generator ends as Complete, or as Failed or Rejected if something is wrong; its successor is not started.
tasks() { docker service ps lockbench_generators --format '{{.CurrentState}}'; }
all=$(docker service inspect -f '{{.Spec.Mode.ReplicatedJob.TotalCompletions}}' lockbench_generators)
shown=
until [ "$(tasks | grep -cE '^(Complete|Failed|Rejected)')" -ge "$all" ]; do
	states=$(tasks | sed 's/ .*//' | sort | uniq -c | tr -s ' \n' ' ')
	if [ "$states" != "$shown" ]; then say "generators:$states" && shown=$states; fi
	sleep 0.5
done
docker service logs --raw lockbench_generators
! tasks | grep -qv '^Complete'
