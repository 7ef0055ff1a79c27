#!/bin/sh
# make drivers: builds the driver in Go, and installs what the drivers in Python, Node and Java need (drivers/install.sh). A
# language that is missing here loses its drivers and nothing else.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
"$go" build -o drivers/go/driver ./drivers/go
bash drivers/install.sh python node java || true
LOCKBENCH_DRIVERS=$PWD/drivers "$go" run ./cmd/lockbench drivers
