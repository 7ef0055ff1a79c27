#!/bin/sh
# make fuzz: runs every fuzz function for the time FUZZ (30s). Go stores a failing input in the package's testdata/fuzz.
# Commit this file with the correction.
set -eu
cd "$(dirname "$0")/.."
grep -rHo '^func Fuzz[A-Za-z]*' --include=*_test.go . | while IFS=: read -r file function; do
	echo "== $file ${function#func }"
	"${GO:-go}" test -vet=off -tags redisonly -run '^$' -fuzz "^${function#func }\$" -fuzztime "${FUZZ:-30s}" "$(dirname "$file")"
done
