#!/usr/bin/env bash
# Runs COMMAND by lockbench observe --exec with THRESHOLDS, one in each line, and ends with the exit code of lockbench.
# The report becomes part of the summary of the job.
set -euo pipefail

: "${COMMAND:?is empty: name the command to run}" "${THRESHOLDS?}" "${PREFIX=}" "${VERSION:=main}"
command -v lockbench >/dev/null || {
	go install "github.com/lockbench/lockbench/cmd/lockbench@$VERSION"
	PATH=$PATH:$(go env GOPATH)/bin
}
out=$(mktemp -d "${RUNNER_TEMP:-/tmp}/lockbench-observe.XXXXXX")
flags=()
while read -r limit; do
	if [ -n "$limit" ]; then flags+=(--threshold "$limit"); fi
done <<<"$THRESHOLDS"
if [ -n "$PREFIX" ]; then flags+=(--prefix "$PREFIX"); fi

code=0
lockbench observe --exec "$COMMAND" "${flags[@]}" \
	-o table -o "markdown=$out/observed.md" -o "json=$out/observed.json" -o "html=$out/observed.html" || code=$?
{
	echo "code=$code"
	if [ -f "$out/observed.md" ]; then echo "directory=$out"; fi
} >>"${GITHUB_OUTPUT:-/dev/stdout}"
if [ -f "$out/observed.md" ]; then cat "$out/observed.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"; fi
case $code in
0) ;;
99) echo "::error::lockbench: a lock that the command used is unsafe" ;;
112) echo "::error::lockbench: the command used no lock in its Redis, so nothing was judged" ;;
*) echo "::error::lockbench observe ended with $code" ;;
esac
exit "$code"
