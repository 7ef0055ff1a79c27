#!/usr/bin/env bash
# Ends the job as lockbench ab has ended. Undecided (112) is a warning unless the comparison is strict,
# everything else that is not 0 a failure. The comment has the reason.
set -euo pipefail

case "$1" in
0) ;;
110) echo "::error::lockbench: the head is worse than the base" ;;
111) echo "::error::lockbench: the head broke a guarantee that its strategy claims" ;;
112)
	if [ "${2:-false}" != true ]; then
		echo "::warning::lockbench: undecided: the comment and the summary say why, and how many pairs would do"
		exit 0
	fi
	echo "::error::lockbench: undecided, and the comparison is strict: more pairs, longer runs, a quieter runner, or strict: false"
	;;
*) echo "::error::lockbench ab ended with $1" ;;
esac
exit "$1"
