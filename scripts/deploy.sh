#!/bin/sh
# make deploy: checks the manifests for Kubernetes against the types of its API, and runs three generators in a Docker
# Swarm. deploy/swarm/run.sh creates and leaves the Swarm, so on an engine that already belongs to a Swarm it does not
# run.
set -eu
cd "$(dirname "$0")/.."
(cd deploy/kubernetes && "${GO:-go}" test -vet=off .)
if [ "$(docker info -f '{{.Swarm.LocalNodeState}}' 2>/dev/null)" != inactive ] || ! command -v redis-server >/dev/null; then
	echo "make deploy: skipped the job in a Swarm, which needs redis-server and a Docker engine that is in no Swarm" >&2
	exit
fi
CLIENTS=20 DURATION=1s GO="${GO:-go}" deploy/swarm/run.sh | tee -a /dev/stderr | grep -q ' 60 clients '
