#!/bin/sh
# make drivers: builds the driver in Go, and installs what the drivers in Python, Node and Java need
# (drivers/install.sh). If a language is not installed on this machine, only its drivers are missing.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
"$go" build -o drivers/go/driver ./drivers/go
bash drivers/install.sh python node java || true
LOCKBENCH_DRIVERS=$PWD/drivers "$go" run ./cmd/lockbench drivers
