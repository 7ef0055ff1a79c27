#!/bin/sh
# make examples: tests a lock in a separate module, with the conformance suite, a benchmark and the command line, and
# the example of a lock's OpenTelemetry spans.
set -eux
cd "$(dirname "$0")/../examples/tracing"
go=${GO:-go}
"$go" test -vet=off .
cd ../ownlock
"$go" test -vet=off -timeout 10m .
cd bench
"$go" test -vet=off -run '^$' -bench . -benchtime 300x .
"$go" run . -s ownlock -c 20 --hold 1ms --warmup 100ms --duration 500ms --no-baselines
