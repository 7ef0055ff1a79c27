#!/bin/sh
# make browser: tests the HTML report and the live page in headless Chromium. axe-core checks them on a phone, a screen
# and paper, in light and dark mode. CHROMIUM=PATH names the browser. "browser.sh found" only prints the path of the
# browser.
set -eu
cd "$(dirname "$0")/.."
for name in ${CHROMIUM:-chromium chromium-browser google-chrome}; do
	if chromium=$(command -v "$name"); then break; fi
done
[ -n "$chromium" ] || {
	echo "make browser: Chromium was not found: install it, such as Debian's package chromium, or set CHROMIUM=PATH" >&2
	exit 1
}
if [ "${1:-}" = found ]; then
	echo "$chromium"
	exit
fi
axe=bin/axe/node_modules/axe-core/axe.min.js
[ -f "$axe" ] || npm install --prefix bin/axe --no-audit --no-fund --silent axe-core@4.14.1
# shellcheck disable=SC2086 # an empty variable must give no argument
LOCKBENCH_CHROMIUM=$chromium LOCKBENCH_AXE=$PWD/$axe \
	"${GO:-go}" test -vet=off -tags browser -run Browser ./results/html ./internal/watch ./command
