#!/usr/bin/env bash
# Writes the comparison into the pull request, over the one from last time.
set -euo pipefail

mark='<!-- lockbench-ab -->'
body=$(mktemp)
{
	echo "$mark"
	cat "$1"
} >"$body"
comments=repos/$GITHUB_REPOSITORY/issues
earlier=$(gh api --paginate "$comments/$PULL_REQUEST/comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | head -n 1)
if [ -n "$earlier" ]; then
	gh api --silent --method PATCH "$comments/comments/$earlier" --field "body=@$body"
else
	gh api --silent "$comments/$PULL_REQUEST/comments" --field "body=@$body"
fi
