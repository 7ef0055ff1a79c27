#!/bin/sh
# make fuzz: every fuzz function, each for FUZZ (30s). An input that fails is kept in the package's testdata/fuzz: commit it.
set -eu
cd "$(dirname "$0")/.."
grep -rHo '^func Fuzz[A-Za-z]*' --include=*_test.go . | while IFS=: read -r file function; do
	echo "== $file ${function#func }"
	"${GO:-go}" test -vet=off -tags redisonly -run '^$' -fuzz "^${function#func }\$" -fuzztime "${FUZZ:-30s}" "$(dirname "$file")"
done
