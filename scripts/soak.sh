#!/bin/bash
# make soak: runs the tests that take hours, to detect rare faults.
#
#   CHAOS=5m   how long lockbench's locks run with random faults
#   EACH=30s   how long each strategy runs with 10,000 clients
#   LOOKS=100  how often each planted broken lock is checked, for docs/evidence/DETECTION.md
set -eux
cd "$(dirname "$0")/.."
go=${GO:-go}
race=
if command -v "$("$go" env CC)" >/dev/null; then race=-race; fi
raced() { CGO_ENABLED=${race:+1} "$go" test $race $LOCKBENCH_TEST_TAGS "$@"; }
plain() { "$go" test $LOCKBENCH_TEST_TAGS "$@"; }

LOCKBENCH_CHAOS=${CHAOS:-5m} raced -run Chaos -v -timeout "${CHAOS:-5m}30m" ./strategies/handoff # CHAOS + 30 minutes
LOCKBENCH_MODEL=1 plain -v -timeout 60m ./strategies/handoff/model ./results/compare
LOCKBENCH_MODEL=1 plain -v -timeout 60m -run 'IndependentWaits|Khinchine' ./internal/engine
raced -p 2 -timeout 60m $("$go" list ./... | grep -v '/handoff/model$')
LOCKBENCH_SOAK=${EACH:-30s} plain -run 'Soak|ForeignServer' -v -timeout 60m ./command
LOCKBENCH_CONFORM=all raced -run '^TestConformance$' -p 1 -timeout 60m ./strategies/... # on clusters, with other clocks
LOCKBENCH_CONFORM=all raced -p 1 -timeout 60m ./strategies/etcd ./strategies/postgres ./strategies/zookeeper \
	./internal/store/etcd ./internal/store/postgres ./internal/store/zookeeper
LOCKBENCH_DETECTION=$PWD LOCKBENCH_LOOKS=${LOOKS:-100} plain -run '^TestDetection$' -timeout 90m ./strategies/locktest
