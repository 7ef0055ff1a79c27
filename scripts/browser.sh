#!/bin/sh
# make browser: the HTML report and the live page in headless Chromium, checked by axe-core, on a phone, a screen and
# paper, light and dark. CHROMIUM=PATH names the browser. "browser.sh found" only prints the path of the browser.
set -eu
cd "$(dirname "$0")/.."
for name in ${CHROMIUM:-chromium chromium-browser google-chrome}; do
	if chromium=$(command -v "$name"); then break; fi
done
[ -n "$chromium" ] || {
	echo "make browser: no Chromium: install it, such as Debian's chromium, or name it with CHROMIUM=PATH" >&2
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
