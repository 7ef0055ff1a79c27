#!/bin/sh
# make others: runs the tests that make test omits. OTHERS is the pattern of the packages that make test omits.
#
# These are the tests of locks on other stores, of third-party locks in all variants, those that the tag redisonly
# omits, those with Prometheus and, after make drivers, with drivers in other languages. If Chromium is installed, the
# tests of the HTML pages run too.
set -eux
cd "$(dirname "$0")/.."
go=${GO:-go}
test="$go test -vet=off $LOCKBENCH_TEST_TAGS -timeout 20m"
# shellcheck disable=SC2086,SC2046 # several words
{
	$test -p 3 $($go list ./... | grep -E "$OTHERS")
	export LOCKBENCH_CONFORM=variants
	$test ./strategies/peers/... ./strategies/locktest ./strategies/all
	files=$(grep -rl '^//go:build .*!redisonly' --include=*_test.go .)
	names=$(sed -n 's/^func \(Test[^(]*\).*/\1/p' $files | paste -sd '|')
	$test -run "^(TestForeignServer.*|TestBadInputs|TestPageExamplesAreValid|TestScripts|$names)\$" \
		$(dirname $files | sort -u)
	docker/setup.sh prometheus
	$test -v -run '^TestPrometheus$' ./command
	$test -v -run '^(TestLocksAreSharedWithRedisson|TestDriverConnectionSettings)$' ./internal/driver ./command
}
if command -v npm >/dev/null && scripts/browser.sh found >/dev/null; then
	scripts/browser.sh
else
	echo "make others: the HTML report was not tested in a browser: install Chromium and npm, then run make browser" >&2
fi
