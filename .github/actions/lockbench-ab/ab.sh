#!/usr/bin/env bash
# Builds the program of the base and of the head, and compares both by lockbench ab. It does not fail for the result:
# verdict.sh does so, after comment.sh.
set -euo pipefail

: "${PACKAGE:?}" "${FLAGS:?}" "${BASE:?is empty, because this is no pull request: set the input base}" "${PAIRS:?}" "${BUDGET:=15m}" "${THRESHOLD:?}" "${COUNT_THRESHOLD:?}" "${METRIC:?}" "${STRICT:=false}" "${ALL_METRICS:=false}"
work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/lockbench-ab.XXXXXX")

git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth 1 origin "$BASE"
git worktree add --quiet --detach "$work/source" "$BASE"
trap 'git worktree remove --force "$work/source"' EXIT
go build -o "$work/head" "$PACKAGE"
# PACKAGE is relative to the current folder, which may be below the root of the repository.
(cd "$work/source/$(git rev-parse --show-prefix)" && go build -o "$work/base" "$PACKAGE")

mkdir "$work/out"
read -ra flags <<<"$FLAGS"
code=0
"$work/head" ab "$work/base" "$work/head" --pairs "$PAIRS" --until decided --budget "$BUDGET" --threshold "$THRESHOLD" --count-threshold "$COUNT_THRESHOLD" --metric "$METRIC" --strict="$STRICT" --all-metrics="$ALL_METRICS" \
	--keep "$work/out/runs" --output text --output "markdown=$work/out/comparison.md" --output "json=$work/out/comparison.json" \
	--output "junit=$work/out/junit.xml" -- "${flags[@]}" || code=$?

if [ -f "$work/out/comparison.md" ]; then
	cat "$work/out/comparison.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
else
	echo "lockbench ab ended with $code and compared nothing" >&2
	exit "$code"
fi
{
	echo "code=$code"
	echo "directory=$work/out"
} >>"${GITHUB_OUTPUT:-/dev/stdout}"
