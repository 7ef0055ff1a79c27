#!/usr/bin/env bash
# Posts the comparison as a comment on the pull request, or replaces the comment of the previous comparison. Any user
# can write a comment with the mark, so the script replaces only a comment by the user of the token.
set -euo pipefail

mark='<!-- lockbench-ab -->'
body=$(mktemp)
{
	echo "$mark"
	cat "$1"
} >"$body"
comments=repos/$GITHUB_REPOSITORY/issues
# The token of a workflow may not query its own user.
author=$(gh api user --jq .login 2>/dev/null) || author='github-actions[bot]'
earlier=$(gh api --paginate "$comments/$PULL_REQUEST/comments" \
	--jq '.[] | [.id, .user.login, (.body | split("\n")[0] | rtrimstr("\r"))] | @tsv' |
	awk -F '\t' -v author="$author" -v mark="$mark" '$2 == author && $3 == mark && !seen++ { print $1 }')
if [ -n "$earlier" ]; then
	gh api --silent --method PATCH "$comments/comments/$earlier" --field "body=@$body"
else
	gh api --silent "$comments/$PULL_REQUEST/comments" --field "body=@$body"
fi
