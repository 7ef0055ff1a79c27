# Every target works in a fresh clone with Go and make. The flags of lockbench
# itself are what make demo shows, or bin/lockbench --help.

GO      ?= go
EACH ?= 30s
CHAOS ?= 5m
LOOKS ?= 100

# One set of flags for every go command, so that none compiles again what another has compiled. A compiler ends before
# its garbage would matter, so it collects rarely. Nothing is compiled or linked for a debugger. What lockbench measures
# is compiled with all optimizations; what has no part in a measurement is not inlined.
PLAIN_CODE := html/template net/http text/template/... go.yaml.in/... go.opentelemetry.io/... \
	$(addprefix github.com/,$(addsuffix /...,felixge moby olekukonko prometheus spf13 stretchr testcontainers) \
	$(addprefix lockbench/lockbench/,command internal/apps/check internal/layout internal/store/redis results/findings \
	results/html results/render internal/testkit/redistest strategies/internal/trial strategies/locktest/...))
ifeq ($(MAKELEVEL),0) # a user's own flags come last, so they win
export GOFLAGS := '-toolexec=env GOGC=400' -gcflags=all=-dwarf=false \
	$(foreach p,$(PLAIN_CODE),'-gcflags=$p=-l -dwarf=false') -ldflags=-w $(shell $(GO) env GOFLAGS)
endif
PLAIN    := -vet=off
# Without cgo the program is static, as the released one is, and an image needs nothing else.
export CGO_ENABLED := 0
# A first build takes minutes, so it says how far it is: go names each package that it has compiled. It compiles the
# standard library while the modules are downloaded, by the go list that counts the packages.
PROGRESS = all=$$($(GO) list -deps $(TAGS) ./cmd/lockbench | wc -l); n=0; while read -r what code; do case $$what$$code in \
	exit[0-9]*) exit $$code ;; *:*|"$$what"?*) echo "$$what $$code" ;; *) n=$$((n + 1)); \
	[ $$((n % 50)) -ne 0 ] || echo "make build: $$n of $$all packages, which take about $$((all * 3 / 8)) s of CPU in all" ;; esac; done
STANDARD := database/sql html/template log/slog net/http testing

# The race detector needs a C compiler.
CC_FOUND := $(shell command -v "$$($(GO) env CC)" 2>/dev/null)
RACE     := $(if $(CC_FOUND),-race -gcflags='github.com/lockbench/lockbench/...=-l -dwarf=false')
race soak valkey: export CGO_ENABLED := $(if $(CC_FOUND),1,0)
# What it looks for is in the locks, and in what runs and measures them. They are not raced where
# another program's locks or servers do the work, nor is a client of go-redis that routes by latency,
# which go-redis 9.23 writes while it pings (strategies/goredis).
RACED     = ./internal/engine ./internal/measure ./internal/launch ./internal/pause ./internal/watch ./internal/store/redis/barrier \
	$$($(GO) list ./strategies/... | grep -vE '/strategies/(all|goredis|locktest|peers|etcd|postgres|zookeeper|handoff/model)(/|$$)')

# Most tests wait more than they compute, so several packages go at once even on two cores.
CORES    := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
PACKAGES := $(shell test $(CORES) -gt 6 && echo $(CORES) || echo 6)
SLOW     := ./strategies/handoff ./command ./internal/engine . ./strategies/locktest ./strategies/redisson ./strategies/redlock ./internal/store/redis/servers # begun first, so that no core idles in the end
OTHERS    = /((internal/store|strategies)/(etcd|postgres|zookeeper)|gozk|stores|rueidislock|containers)$$
# What no test needs, such as drivers/go, is compiled by make lint.
TESTED    = {{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}

# What make languages measures and checks.
ONENODE   := 'exec:redis-py,exec:redis-py --sleep 0.01,exec:redis-py-asyncio,exec:python-redis-lock,exec:aioredlock,exec:redlock,exec:redis-semaphore,exec:redisson,exec:redisson fair,exec:redisson fenced,exec:redisson spin,exec:redisson semaphore,exec:go pubsub,exec:noop-python,exec:noop-node,exec:redisson noop,exec:go noop'
FIVENODES := 'exec:aioredlock 5,exec:redlock 5,exec:redisson redlock'
CHECKED   := redis-py redis-py-asyncio python-redis-lock aioredlock redlock redis-semaphore redisson redisson_fenced

# Where another server of the protocol is kept, and what is tested on it.
VALKEY   ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lockbench/valkey
ONVALKEY := ^(TestCluster|TestCostAlone|TestReplicas|TestRights|TestWithoutInfo|TestOnlyItsToken.*|TestExtend|TestErrors)$$

# The HTML report is looked at in a browser where there is one.
AXE      := bin/axe/node_modules/axe-core/axe.min.js
CHROMIUM ?= $(shell for c in chromium chromium-browser google-chrome; do command -v $$c && break; done)

# Tests start their Redis in a container where there is no server to start as a process.
SERVER := $(shell command -v redis-server || command -v valkey-server)
ifeq ($(SERVER),)
export GOFLAGS := $(GOFLAGS) -tags=containers
else
# No client but go-redis is compiled.
REDISONLY := -tags=redisonly
endif

# A program with the race detector sleeps for a second before it ends, and the tests of the
# command start hundreds.
export GORACE := atexit_sleep_ms=0

# go list asks git, which would write below .git: tests that look through this folder were never cached.
export GIT_OPTIONAL_LOCKS := 0

# Containers of tests are swept by lockbench itself.
export TESTCONTAINERS_RYUK_DISABLED := true

.PHONY: flags examples deploy languages drivers stores valkey others unseen help build demo test race bench lint peers conformance compat claims soak gate sessions browser redis

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "make %-8s%s\n", $$1, $$2 }'

redis: ## make a Redis available: an image, or redis-server
	@docker/setup.sh

stores: ## make etcd, PostgreSQL and ZooKeeper available, out of Debian's packages
	@docker/setup.sh stores

flags: ## the flags of every target: after export GOFLAGS="$(make flags)" a go test of your own compiles nothing again
	@echo "$$GOFLAGS"

build: ## bin/lockbench
	@{ $(GO) build -v $(STANDARD); $(GO) build -v $(TAGS) -o bin/lockbench ./cmd/lockbench; echo "exit $$?"; } 2>&1 | { $(PROGRESS); } >&2

# What pip and npm install has the hashes that are kept here, and nothing of it is built: that would get more. Maven
# compares with what its repository says (-C); what the driver runs with is then compared with what is kept here.
JARS := drivers/redisson/target/dependency
drivers: ## what the drivers of locks in other languages need, by pip, npm and Maven, and the driver in Go
	@$(GO) build -o drivers/go/driver ./drivers/go
	@need() { command -v $$1 >/dev/null || { echo "make drivers: no $$1, so no drivers in $$2" >&2; return 1; }; }; \
		failed() { echo "make drivers: $$1 failed, so drivers in $$2 may be missing" >&2; }; \
		! need pip Python || pip install -q --root-user-action ignore --upgrade --target drivers/python/site \
			--only-binary :all: --require-hashes -r drivers/python/requirements.txt || failed pip Python; \
		! need npm Node || npm ci --prefix drivers/node --no-audit --no-fund --silent || failed npm Node; \
		! need mvn Java || { rm -rf $(JARS) && mvn -q -B -C -f drivers/redisson/pom.xml package && \
			{ (cd $(JARS) && LC_ALL=C sha256sum *) | diff drivers/redisson/dependencies.sha256 - >&2 || { rm -r $(JARS); false; }; } && \
			echo '{"id":1,"do":"open","redis":["redis://127.0.0.1:1"],"prefix":"","ttl_ms":1000}' | \
			drivers/redisson/driver archive >/dev/null 2>&1; } || failed mvn Java
	@LOCKBENCH_DRIVERS=$(CURDIR)/drivers $(GO) run ./cmd/lockbench drivers

# Where Redis is a process the demo needs 60 % of what there is to compile, and compiles that, unless all is compiled already.
demo: ## the main job: six strategies, 500 clients, 36 s and compiling
	@tags=; if ! bin/lockbench version 2>/dev/null | grep -qv redisonly && { [ -n "$(SERVER)" ] || ! docker/setup.sh engine; }; then \
		tags=-tags=redisonly; fi; $(MAKE) --no-print-directory -j2 $(if $(SERVER),,redis) build TAGS=$$tags
	bin/lockbench --strategy spin,pubsub,blpop,redsync,handoff,cohort --clients 500 --instances 10 --hold 1ms \
		--warmup 1s --duration 4s --output table --output json=demo.json
	bin/lockbench report demo.json -o demo.html
	@! bin/lockbench version | grep -q redisonly || \
		echo "make demo: bin/lockbench was built with -tags redisonly, without etcd, PostgreSQL, ZooKeeper, containers and rueidislock: make build adds them" >&2

test: redis $(if $(REDISONLY),,stores) ## every test that an ordinary change may break
	$(GO) test $(PLAIN) $(REDISONLY) -p $(PACKAGES) -timeout 20m $(SLOW) $$($(GO) list $(REDISONLY) -f "$(TESTED)" ./... | grep -vE '$(OTHERS)')
	@echo "make test: left to make others: etcd, PostgreSQL, ZooKeeper, rueidislock$(if $(REDISONLY), and containers and pages that list all strategies)" >&2

others: redis stores examples deploy $(if $(and $(CHROMIUM),$(shell command -v npm)),browser,unseen) ## the tests of locks on other stores, of other libraries' locks in all variants, and make examples and browser
	$(GO) test $(PLAIN) -p 3 -timeout 20m $$($(GO) list ./... | grep -E '$(OTHERS)')
	LOCKBENCH_CONFORM=variants $(GO) test $(PLAIN) -timeout 20m ./strategies/peers/... ./strategies/locktest ./strategies/all
	files=$$(grep -rl '^//go:build .*!redisonly' --include=*_test.go .) && LOCKBENCH_CONFORM=variants $(GO) test $(PLAIN) -run \
		"^(TestAUsersServer.*|TestBadInputs|TestExamplesOfThePagesRun|TestScripts$$(sed -n 's/^func \(Test[^(]*\).*/|\1/p' $$files | tr -d '\n'))$$" $$(dirname $$files | sort -u)
	docker/setup.sh prometheus && LOCKBENCH_CONFORM=variants $(GO) test $(PLAIN) -v -run '^TestPrometheus$$' ./command
	LOCKBENCH_CONFORM=variants $(GO) test $(PLAIN) -v -run '^(TestLocksAreSharedWithALiveRedisson|TestWaysInOfDrivers)$$' ./internal/driver ./command # after make drivers

race: redis ## the tests of locks in all variants, and of the engine, under the race detector
	@test -n "$(RACE)" || { echo "make race: no C compiler, so no race detector: install gcc" >&2; exit 1; }
	LOCKBENCH_CONFORM=variants $(GO) test $(RACE) $(PLAIN) -p 3 -timeout 20m $(RACED) # a lock gives up on a server after 2 s

examples: redis ## a lock in a module of its own: the conformance suite, a benchmark, the command line; and spans of a lock
	cd examples/tracing && $(GO) test $(PLAIN) .
	cd examples/ownlock && $(GO) test $(PLAIN) -timeout 10m . && $(GO) test $(PLAIN) -run '^$$' -bench . -benchtime 300x . && \
		$(GO) run ./bench -s ownlock -c 20 --hold 1ms --warmup 100ms --duration 500ms --no-baselines

deploy: redis ## the manifests for Kubernetes against its API's types, and three generators in a Docker Swarm, if there is none yet
	cd deploy/kubernetes && $(GO) test $(PLAIN) .
	@if [ "$$(docker info -f '{{.Swarm.LocalNodeState}}' 2>/dev/null)" = inactive ] && command -v redis-server >/dev/null; then \
		set -x; CLIENTS=20 DURATION=1s GO="$(GO)" deploy/swarm/run.sh | tee -a /dev/stderr | grep -q ' 60 clients '; \
	else echo "make deploy: no Docker engine without a swarm, or no redis-server, so no job in a swarm" >&2; fi

unseen:
	@echo "make others: no Chromium or no npm, so the HTML report was not looked at in a browser: make browser" >&2

bench: redis ## every Go benchmark, without the tests
	$(GO) test -run '^$$' -bench . -timeout 30m ./...

lint: ## golangci-lint where it is installed, else go vet and gofmt
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else \
		echo "make lint: no golangci-lint, so only go vet and gofmt" >&2; \
		$(GO) vet ./... && unformatted=$$(gofmt -l .) && \
		if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted" >&2; exit 1; fi; \
	fi

peers: redis build ## docs/evidence/PEERS.md: our locks beside other libraries', in three quarters of an hour; PEERS='--rounds 7' in half an hour
	bin/lockbench claims internal/apps/claims/data/peers/*.yaml $(PEERS) --title "Beside the peers" -o table -o json=bin/peers.json -o markdown=docs/evidence/PEERS.md

conformance: redis ## docs/evidence/CONFORMANCE.md: every check of the suite on every lock, in about 10 minutes
	LOCKBENCH_CONFORMANCE=$(CURDIR)/docs/evidence/CONFORMANCE.md $(GO) test -run '^TestConformanceTable$$' -timeout 120m ./strategies/all

languages: redis build drivers ## docs/LANGUAGES.md: every driver at 1, 10 and 100 clients, and lockbench check on each lock, in half an hour
	@mkdir -p bin/languages
	for clients in 1 10,100; do \
		run="bin/lockbench --clients $$clients --instances $$(test $$clients = 1 && echo 1 || echo 2) --hold 1ms --warmup 3s --duration 3s" && \
		$$run -s $(ONENODE) -o json=bin/languages/run-1-$$clients.json; \
		$$run -s $(FIVENODES) --topology nodes:5 -o json=bin/languages/run-5-$$clients.json; \
	done
	for lock in $(CHECKED); do JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1 bin/lockbench check "exec:$$(echo $$lock | tr _ ' ')" -o table -o json=bin/languages/check-$$lock.json; done
	LOCKBENCH_LANGUAGES=$(CURDIR) $(GO) test $(PLAIN) -count 1 -run '^TestLanguages$$' ./docs

compat: redis ## docs/evidence/COMPATIBILITY.md: every strategy on each server found, or on those of LOCKBENCH_SERVERS, in a minute or two each
	LOCKBENCH_COMPAT=$(CURDIR)/docs/evidence/COMPATIBILITY.md $(GO) test $(PLAIN) -run '^TestCompatibility$$' -timeout 60m ./strategies/all

claims: redis stores build ## docs/evidence/CLAIMS.md: common claims about Redis locks, each figure beside its counter-case, in three quarters of an hour
	bin/lockbench claims --counter -o table -o markdown=docs/evidence/CLAIMS.md

soak: redis stores ## every strategy for EACH (30s), then with 10,000 clients; our own for CHAOS (5m) with faults at random; LOOKS (100) at each broken lock
	LOCKBENCH_CHAOS=$(CHAOS) $(GO) test $(RACE) -run Chaos -v -timeout $(CHAOS)30m ./strategies/handoff # CHAOS and 30m more
	LOCKBENCH_MODEL=1 $(GO) test -v -timeout 60m ./strategies/handoff/model ./results/compare
	LOCKBENCH_MODEL=1 $(GO) test -v -timeout 60m -run 'IndependentWaits|Khinchines' ./internal/engine
	$(GO) test $(RACE) -p 2 -timeout 60m $$($(GO) list ./... | grep -v '/handoff/model$$') # simulations would take minutes
	LOCKBENCH_SOAK=$(EACH) $(GO) test -run 'Soak|AUsersServer' -v -timeout 60m ./command
	LOCKBENCH_CONFORM=all $(GO) test $(RACE) -run '^TestConformance$$' -p 1 -timeout 60m ./strategies/... # on clusters and with other clocks too
	LOCKBENCH_CONFORM=all $(GO) test $(RACE) -p 1 -timeout 60m ./strategies/etcd ./strategies/postgres ./strategies/zookeeper ./internal/store/etcd ./internal/store/postgres ./internal/store/zookeeper # in all variants
	LOCKBENCH_DETECTION=$(CURDIR) LOCKBENCH_LOOKS=$(LOOKS) $(GO) test -run '^TestDetection$$' -timeout 90m ./strategies/locktest # docs/evidence/DETECTION.md

gate: redis ## prove that the regression gate fires and does not cry wolf: a quarter of an hour
	LOCKBENCH_GATE=$(CURDIR)/gate.md $(GO) test -run '^TestGate$$' -v -timeout 120m ./command; code=$$?; cat gate.md; exit $$code

sessions: redis ## prove that compare does not cry wolf: half an hour
	LOCKBENCH_GATE_SESSIONS=$(CURDIR)/sessions $(GO) test -run '^TestSessions$$' -v -timeout 120m ./command

valkey: ## part of the tests on Valkey 9, else 8, out of a newer Debian's packages: clusters by address, every strategy's rights
	@for suite in forky trixie; do server=$$(docker/other-server.sh valkey-server $$suite "$(VALKEY)/$$suite") && break; server=; done; \
		test -n "$$server" || { echo "make valkey: no Valkey is available here, so nothing was tested on it" >&2; exit 0; }; \
		echo "on $$server"; LOCKBENCH_REDIS_SERVER=$$server LOCKBENCH_CONFORM=variants $(GO) test $(RACE) $(PLAIN) -count=1 -run '$(ONVALKEY)' \
			./internal/store/redis/servers ./strategies/all ./strategies/polled ./strategies/internal ./strategies/handoff

browser: redis ## look at the HTML report and the live page in headless Chromium, and have axe-core look: on a phone, a screen and paper, light and dark
	@test -n "$(CHROMIUM)" || { echo "make browser: no Chromium: install it, such as Debian's chromium, or say where it is with CHROMIUM=PATH" >&2; exit 1; }
	@test -f $(AXE) || npm install --prefix bin/axe --no-audit --no-fund --silent axe-core@4.14.1
	LOCKBENCH_CHROMIUM=$(CHROMIUM) LOCKBENCH_AXE=$(CURDIR)/$(AXE) $(GO) test $(PLAIN) -tags browser -run Browser ./results/html ./command
