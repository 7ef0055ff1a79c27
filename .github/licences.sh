#!/usr/bin/env bash
# Copies the licences of all modules that are compiled into a package, by default lockbench, and the licence of Go to a
# folder. GOOS and GOARCH select the system.
set -euo pipefail

to=${1:?usage: licences.sh FOLDER [PACKAGE]}
modules=$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}' "${2:-./cmd/lockbench}" | sort -u)
missing=
while IFS=$'\t' read -r module dir; do
	[ -n "$module" ] || continue
	mkdir -p "$to/$module"
	find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) -exec cp {} "$to/$module/" \;
	[ -n "$(ls -A "$to/$module")" ] || missing+=" $module"
done <<<"go@$(go env GOVERSION)	$(go env GOROOT)
$modules"
[ -z "$missing" ] || {
	echo "licences.sh: no licence of$missing" >&2
	exit 1
}
