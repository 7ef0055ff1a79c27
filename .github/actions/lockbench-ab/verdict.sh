#!/usr/bin/env bash
# Ends the job with the exit code of lockbench ab. Undecided (112) is only a warning, unless the comparison is strict.
# Any other code except 0 is a failure. The comment gives the reason.
set -euo pipefail

case "$1" in
0) ;;
110) echo "::error::lockbench: the head is worse than the base" ;;
111) echo "::error::lockbench: the head broke a guarantee that its strategy claims" ;;
112)
	if [ "${2:-false}" != true ]; then
		echo "::warning::lockbench: undecided: the comment and the summary give the reason and the number of pairs that would suffice"
		exit 0
	fi
	echo "::error::lockbench: undecided, and the comparison is strict: use more pairs, longer runs or a quieter runner, or set strict: false"
	;;
*) echo "::error::lockbench ab ended with $1" ;;
esac
exit "$1"
