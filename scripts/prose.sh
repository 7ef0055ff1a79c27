#!/bin/sh
# The part of make lint that checks prose: Vale with the rules of tools/prose, on every page except the generated ones
# in docs/evidence. Vale needs a C compiler for its parsers of code. Its first build takes two minutes.
set -eu
cd "$(dirname "$0")/.."
pages=$(git ls-files '*.md' | grep -vE '^docs/evidence/|/testdata/')
# shellcheck disable=SC2086 # several words
CGO_ENABLED=1 "${GO:-go}" tool -modfile=tools/prose/go.mod vale --config tools/prose/vale.ini --output line $pages
