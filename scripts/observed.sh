#!/bin/bash
# make observed: writes docs/evidence/OBSERVED.md, which compares the report of lockbench observe for each lock with the
# report of the lock's own run. Needs bin/lockbench, and the drivers that make drivers installs. observe starts a
# separate Redis for each run.
set -u
cd "$(dirname "$0")/.."
locks=(spin setnx-expire redsync redislock redisson-spin pubsub fair fenced blpop handoff
	exec:redis-py exec:redis-py-asyncio exec:python-redis-lock exec:aioredlock exec:redlock exec:redis-semaphore
	exec:redisson 'exec:redisson fair' 'exec:redisson fenced' 'exec:redisson spin' exec:shedlock 'exec:shedlock safe')
declare -A modes=(
	[1-closed]='-c 8 -d 2s --think 5ms'
	[2-open]='--rate 60/s -d 3s'
	[3-timeout]='-c 8 -d 3s --hold 20ms --timeout 60ms'
	[4-expiry]='-c 4 -d 4s --ttl 200ms --hold uniform:20ms,300ms'
	[5-crash]='-c 4 -d 4s --ttl 500ms --fault holder-crash:at=500ms,every=1s'
)
rm -rf bin/observed && mkdir -p bin/observed
for mode in $(printf '%s\n' "${!modes[@]}" | sort); do
	for lock in "${locks[@]}"; do
		case $mode-$lock in
		2-open-exec:* | [45]-*-exec:*) continue ;; # drivers support neither an open loop nor crashes, and release within the TTL
		1-closed-handoff) instances=8 ;; # observe sees no command when handoff passes the lock within a process
		*) instances=2 ;;
		esac
		file=bin/observed/$mode-${lock//[: ]/_}
		bin/lockbench observe -o "json=$file-seen.json" --exec "bin/lockbench -q -s '$lock' \
			--instances $instances --hold 2ms --warmup 0s --no-baselines ${modes[$mode]} --redis \$REDIS_URL \
			-o json=$file-run.json" >/dev/null || echo "make observed: $mode $lock ended with $?" >&2
	done
done
LOCKBENCH_OBSERVED=$PWD "${GO:-go}" test -vet=off -count 1 -run '^TestObserved$' ./docs
