#!/usr/bin/env bash
# Writes the comparison into the pull request, over the one from last time. Everybody can write the
# mark, so the comment must be of the token's own user, too.
set -euo pipefail

mark='<!-- lockbench-ab -->'
body=$(mktemp)
{
	echo "$mark"
	cat "$1"
} >"$body"
comments=repos/$GITHUB_REPOSITORY/issues
# A workflow's own token may not ask who it is.
author=$(gh api user --jq .login 2>/dev/null) || author='github-actions[bot]'
earlier=$(gh api --paginate "$comments/$PULL_REQUEST/comments" \
	--jq '.[] | [.id, .user.login, (.body | split("\n")[0] | rtrimstr("\r"))] | @tsv' |
	awk -F '\t' -v author="$author" -v mark="$mark" '$2 == author && $3 == mark && !seen++ { print $1 }')
if [ -n "$earlier" ]; then
	gh api --silent --method PATCH "$comments/comments/$earlier" --field "body=@$body"
else
	gh api --silent "$comments/$PULL_REQUEST/comments" --field "body=@$body"
fi
