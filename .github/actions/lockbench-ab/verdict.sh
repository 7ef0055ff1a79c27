#!/usr/bin/env bash
# Ends the job as lockbench ab has ended. No verdict (112) is a warning if the comparison is not strict,
# everything else that is not 0 a failure.
set -euo pipefail

case "$1" in
0) ;;
110) echo "::error::lockbench: the head is worse than the base" ;;
111) echo "::error::lockbench: the head broke a guarantee that its strategy claims" ;;
112)
	if [ "${2:-true}" = false ]; then
		echo "::warning::lockbench: no verdict was possible"
		exit 0
	fi
	echo "::error::lockbench: too few runs could be trusted, or a change as large as the threshold would not have been significant: more pairs, longer runs, or strict: false"
	;;
*) echo "::error::lockbench ab ended with $1" ;;
esac
exit "$1"
