#!/bin/sh
# make pictures: runs the demo with a live page, and writes two pictures for README.md: docs/pictures/live.png (the live
# page during the fifth strategy) and page.png (the top of the report's page). Needs Chromium. The browser disturbs the
# run, so README.md does not cite its figures.
set -eu
cd "$(dirname "$0")/.."
chromium=$(scripts/browser.sh found)
shoot() { # FILE URL
	"$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1000 --timeout=3000 \
		--screenshot="docs/pictures/$1" "$2" 2>/dev/null
}
scripts/demo.sh --live 127.0.0.1:5665 &
demo=$!
sleep 25 # 5 s for each strategy
shoot live.png http://127.0.0.1:5665/ || { wait $demo; exit 1; }
wait $demo
shoot page.png "file://$PWD/demo.html"
