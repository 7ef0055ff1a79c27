#!/bin/sh
# Measures with three load generators in a Docker Swarm, and prints their report. If the Docker engine is in no Swarm,
# the script creates one and leaves it at the end. Without LOCKBENCH_REDIS it starts a redis-server without persistence
# on port PORT (16379) and stops it at the end. CLIENTS and DURATION replace the values in stack.yaml.
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
	echo "run.sh: a stack named lockbench exists already: remove it by docker stack rm lockbench" >&2
	exit 1
fi
deployed=yes
say "deploying the generators"
docker stack deploy --resolve-image never -c deploy/swarm/stack.yaml lockbench >/dev/null 2>&1

# A task ends as Complete or, after an error, as Failed or Rejected. stack.yaml delays the restart of a failed task by a
# day.
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
