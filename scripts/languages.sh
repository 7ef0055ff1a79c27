#!/bin/bash
# make languages: writes docs/evidence/LANGUAGES.md from a run of every driver at 1, 10 and 100 clients and a check of
# each lock. Needs bin/lockbench, and the drivers that make drivers installs.
set -eu
cd "$(dirname "$0")/.."
one_node='exec:redis-py,exec:redis-py --sleep 0.01,exec:redis-py-asyncio,exec:python-redis-lock,exec:aioredlock'
one_node+=',exec:redlock,exec:redis-semaphore,exec:redisson,exec:redisson fair,exec:redisson fenced,exec:redisson spin'
one_node+=',exec:shedlock,exec:shedlock safe'
one_node+=',exec:redisson semaphore,exec:go pubsub,exec:noop-python,exec:noop-node,exec:redisson noop,exec:go noop'
five_nodes='exec:aioredlock 5,exec:redlock 5,exec:redisson redlock'
checked=(redis-py redis-py-asyncio python-redis-lock aioredlock redlock redis-semaphore redisson 'redisson fenced' shedlock
	'shedlock safe')

mkdir -p bin/languages
run() { # CLIENTS INSTANCES
	local common=(--clients "$1" --instances "$2" --hold 1ms --warmup 3s --duration 3s)
	bin/lockbench "${common[@]}" -s "$one_node" -o "json=bin/languages/run-1-$1.json" || true
	bin/lockbench "${common[@]}" -s "$five_nodes" --topology nodes:5 -o "json=bin/languages/run-5-$1.json" || true
}
run 1 1
run 10,100 2
for lock in "${checked[@]}"; do # a failed check is a result
	JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1 \
		bin/lockbench check "exec:$lock" -o table -o "json=bin/languages/check-${lock// /_}.json" || true
done
LOCKBENCH_LANGUAGES=$PWD "${GO:-go}" test -vet=off -count 1 -run '^TestLanguages$' ./docs
