#!/bin/sh
# The part of make lint that reads prose: Vale with the words of tools/prose, on every page that people write. Programs
# write docs/evidence. Vale needs a C compiler (for its parsers of code), and two minutes to build the first time.
set -eu
cd "$(dirname "$0")/.."
pages=$(git ls-files '*.md' | grep -vE '^docs/evidence/|/testdata/')
# shellcheck disable=SC2086 # several words
CGO_ENABLED=1 "${GO:-go}" tool -modfile=tools/prose/go.mod vale --config tools/prose/vale.ini --output line $pages
