#!/bin/sh
# make fuzz: runs every fuzz function for FUZZ (30s). A failing input is stored in the package's testdata/fuzz: commit
# it.
set -eu
cd "$(dirname "$0")/.."
grep -rHo '^func Fuzz[A-Za-z]*' --include=*_test.go . | while IFS=: read -r file function; do
	echo "== $file ${function#func }"
	"${GO:-go}" test -vet=off -tags redisonly -run '^$' -fuzz "^${function#func }\$" -fuzztime "${FUZZ:-30s}" "$(dirname "$file")"
done
