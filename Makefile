# Every target works in a fresh clone with Go and make. A longer recipe is a script in scripts/, whose first lines
# describe what it does and needs. For the flags of lockbench itself, see make demo or bin/lockbench --help.

GO ?= go
export GO

# Without cgo the program is static, as the released one is. The race detector needs cgo (scripts/race.sh).
export CGO_ENABLED ?= 0
# By default the race detector makes a program sleep for a second before it ends, and tests of the command start
# hundreds.
export GORACE := atexit_sleep_ms=0
# lockbench and its tests remove their containers themselves.
export TESTCONTAINERS_RYUK_DISABLED := true

# If a server is installed, tests start Redis as a process and compile no client except go-redis. Otherwise they start
# containers. make others runs the tests that the tag redisonly omits.
SERVER := $(shell command -v redis-server || command -v valkey-server)
TAGS   := $(if $(SERVER),-tags=redisonly,-tags=containers)
export LOCKBENCH_TEST_TAGS := $(if $(SERVER),,-tags=containers)

# go vet is part of make lint. Most tests wait more than they compute, so several packages run at once on two cores too.
# The slow packages begin first, so that no core idles at the end.
TEST   := $(GO) test -vet=off -timeout 20m
CORES  := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
AT_ONCE := $(shell test $(CORES) -gt 6 && echo $(CORES) || echo 6)
SLOW   := ./command ./strategies/handoff ./internal/engine . ./strategies/locktest ./strategies/redisson
OTHERS := /((internal/store|strategies)/(etcd|postgres|zookeeper)|gozk|stores|rueidislock|containers)$$

.PHONY: help redis stores build demo test others race lint fuzz bench examples deploy drivers browser pictures valkey \
	soak peers conformance languages observed compat claims gate sessions

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "make %-12s%s\n", $$1, $$2 }'

redis: ## make a Redis available: an image, or redis-server
	@docker/setup.sh

stores: ## make etcd, PostgreSQL and ZooKeeper available, from Debian's packages
	@docker/setup.sh stores

build: ## the program bin/lockbench
	@echo "make build: a first build takes a minute or two on two cores" >&2
	$(GO) build -ldflags=-w -o bin/lockbench ./cmd/lockbench

demo: redis ## the main job: six strategies, 500 clients, 36 s after the build
	@scripts/demo.sh

test: redis $(if $(SERVER),,stores) ## every test that an ordinary change may break
	$(TEST) $(TAGS) -p $(AT_ONCE) $(SLOW) $$($(GO) list $(TAGS) ./... | grep -vE '$(OTHERS)')
	@echo "make test: make others tests etcd, PostgreSQL, ZooKeeper, rueidislock and containers" >&2

others: redis stores examples deploy ## the tests of other stores, of other libraries' locks in all variants, of examples, manifests and pages
	@OTHERS='$(OTHERS)' scripts/others.sh

race: redis ## the tests of locks in all variants, and of the engine, under the race detector
	@scripts/race.sh

lint: ## golangci-lint and Vale, in the versions that tools/ pins
	$(GO) tool -modfile=tools/go.mod golangci-lint run
	@scripts/prose.sh

fuzz: ## every fuzz function for half a minute
	@scripts/fuzz.sh

bench: redis ## every Go benchmark, without the tests
	$(GO) test -run '^$$' -bench . -timeout 30m ./...

examples: redis ## tests of a lock in a separate module (suite, benchmark, command line), and of the example of spans
	@scripts/examples.sh

deploy: redis ## the manifests for Kubernetes against its API's types, and three generators in a Docker Swarm
	@scripts/deploy.sh

drivers: ## the drivers of locks in Go and other languages, with what pip, npm and Maven install for them
	@scripts/drivers.sh

browser: redis ## the HTML report and the live page in headless Chromium, checked by axe-core
	@scripts/browser.sh

pictures: redis build ## two pictures of README.md, from a run of the demo with a live page
	@scripts/pictures.sh

valkey: ## part of the tests on Valkey 9 or 8, and DELEX on Redis 8.4 or later, from a newer Debian's packages
	@scripts/valkey.sh

soak: redis stores ## tests that take hours: every strategy, random faults, models, simulations, and how often broken locks are found
	@scripts/soak.sh

peers: redis build ## docs/evidence/PEERS.md: our locks compared with other libraries', 45 minutes
	bin/lockbench claims internal/apps/claims/data/peers/*.yaml $(PEERS) --title "Compared with the peers" \
		-o table -o json=bin/peers.json -o markdown=docs/evidence/PEERS.md

conformance: redis ## docs/evidence/CONFORMANCE.md: every check of the suite on every lock, 15 minutes
	LOCKBENCH_CONFORMANCE=$(CURDIR)/docs/evidence/CONFORMANCE.md \
		$(GO) test -run '^TestConformanceTable$$' -timeout 120m ./strategies/all

languages: redis build drivers ## docs/evidence/LANGUAGES.md: every driver at 1, 10 and 100 clients, and its checks, 30 minutes
	@scripts/languages.sh

observed: redis build drivers ## docs/evidence/OBSERVED.md: what observe sees of each lock, compared with its run, 8 minutes
	@scripts/observed.sh

compat: redis ## docs/evidence/COMPATIBILITY.md: every strategy on each server found, or on those of LOCKBENCH_SERVERS
	LOCKBENCH_COMPAT=$(CURDIR)/docs/evidence/COMPATIBILITY.md \
		$(GO) test -run '^TestCompatibility$$' -timeout 60m ./strategies/all

claims: redis stores build ## docs/evidence/CLAIMS.md: claims about Redis locks with their counter-cases, 50 minutes
	bin/lockbench claims --counter -o table -o markdown=docs/evidence/CLAIMS.md

gate: redis ## gate.md: the regression gate fires on planted regressions and on nothing else, 15 minutes
	LOCKBENCH_GATE=$(CURDIR)/gate.md $(GO) test -run '^TestGate$$' -v -timeout 120m ./command

sessions: redis ## sessions/: compare finds no change where there is none, 30 minutes
	LOCKBENCH_GATE_SESSIONS=$(CURDIR)/sessions $(GO) test -run '^TestSessions$$' -v -timeout 120m ./command
