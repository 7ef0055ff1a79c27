#!/bin/bash
# make drivers: builds the driver in Go and installs what the drivers in Python, Node and Java need, by pip, npm and Maven.
#
# What pip and npm install must have the hashes that are kept in drivers/, and is not built, because a build would install
# more. Maven compares each file with its repository's checksum (-C), and the files that the driver runs with are then
# compared with those kept in drivers/. A language that is missing here loses its drivers and nothing else.
set -u
cd "$(dirname "$0")/.."
go=${GO:-go}

need() { command -v "$1" >/dev/null || { echo "make drivers: no $1, so no drivers in $2" >&2; return 1; }; }
failed() { echo "make drivers: $1 failed, so drivers in $2 may be missing" >&2; }

python() {
	pip install -q --root-user-action ignore --upgrade --target drivers/python/site \
		--only-binary :all: --require-hashes -r drivers/python/requirements.txt
}

node() { npm ci --prefix drivers/node --no-audit --no-fund --silent; }

jars=drivers/redisson/target/dependency
java() {
	rm -rf "$jars" && mvn -q -B -C -f drivers/redisson/pom.xml package || return 1
	if ! (cd "$jars" && LC_ALL=C sha256sum *) | diff drivers/redisson/dependencies.sha256 - >&2; then
		rm -r "$jars"
		return 1
	fi
	# The first start writes the archive of classes that makes later starts fast.
	echo '{"id":1,"do":"open","redis":["redis://127.0.0.1:1"],"prefix":"","ttl_ms":1000}' |
		drivers/redisson/driver archive >/dev/null 2>&1
}

"$go" build -o drivers/go/driver ./drivers/go || exit 1
if need pip Python; then python || failed pip Python; fi
if need npm Node; then node || failed npm Node; fi
if need mvn Java; then java || failed mvn Java; fi
LOCKBENCH_DRIVERS=$PWD/drivers "$go" run ./cmd/lockbench drivers
