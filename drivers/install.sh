#!/bin/bash
# Installs the libraries that the drivers of some languages need into this directory: install.sh python|node|java ...
# lockbench drivers install runs it in the user's data directory, and make drivers in the repository.
#
# Packages from pip and npm must have the hashes stored here, and are not built, because a build would install more.
# Maven compares each file with the checksum in its repository (-C). The script then compares the files that the driver
# loads with the checksums stored here. If a language cannot be installed, only its drivers are missing, and the exit
# status is 1.
set -u
cd "$(dirname "$0")" || exit 1

need() { command -v "$1" >/dev/null || { echo "drivers: $1 is not installed, so the drivers in $2 are missing" >&2; return 1; }; }

python() {
	need pip Python && pip install -q --root-user-action ignore --upgrade --target python/site \
		--only-binary :all: --require-hashes -r python/requirements.txt
}

node() { need npm Node && npm ci --prefix node --no-audit --no-fund --silent; }

java() {
	need mvn Java || return 1
	rm -rf redisson/target/dependency && mvn -q -B -C -f redisson/pom.xml package || return 1
	if ! (cd redisson/target/dependency && LC_ALL=C sha256sum *) | diff redisson/dependencies.sha256 - >&2; then
		rm -r redisson/target/dependency
		return 1
	fi
	# The first start writes the class archive that makes later starts fast.
	echo '{"id":1,"do":"open","redis":["redis://127.0.0.1:1"],"prefix":"","ttl_ms":1000}' |
		redisson/driver archive >/dev/null 2>&1
	return 0
}

status=0
for language in "$@"; do
	case $language in
	python | node | java) "$language" || { echo "drivers: some drivers in $language may be missing" >&2; status=1; } ;;
	*) echo "drivers: unknown language $language" >&2; status=1 ;;
	esac
done
exit "$status"
