# Every target works in a fresh clone with Go and make. The flags of lockbench
# itself are what make demo shows, or bin/lockbench --help.

GO      ?= go
EACH ?= 30s

# The race detector needs a C compiler.
CC_FOUND := $(shell command -v "$$($(GO) env CC)" 2>/dev/null)
RACE     := $(if $(CC_FOUND),-race)

.PHONY: help build demo test bench lint peers soak gate redis

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "make %-8s%s\n", $$1, $$2 }'

redis: ## make a Redis available: an image, or redis-server
	@docker/setup.sh

build: ## bin/lockbench
	$(GO) build -o bin/lockbench ./cmd/lockbench

demo: redis build ## the main job: four strategies, 500 clients, under a minute
	bin/lockbench --strategy spin,pubsub,blpop,redsync --clients 500 --instances 10 --hold 1ms \
		--warmup 1s --duration 5s --output table --output json=demo.json

test: redis ## go vet and every test, with the race detector
	@test -n "$(RACE)" || echo "make test: no C compiler, so no race detector: install gcc" >&2
	$(GO) vet ./...
	$(GO) test $(RACE) -timeout 10m ./...
ifdef RACE
	$(GO) test -run Pollaczek ./internal/selfcheck # three million customers, too many for the race detector
endif

bench: redis ## every Go benchmark, without the tests
	$(GO) test -run '^$$' -bench . -timeout 30m ./...

lint: ## golangci-lint where it is installed, else go vet and gofmt
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else \
		echo "make lint: no golangci-lint, so only go vet and gofmt" >&2; \
		$(GO) vet ./... && unformatted=$$(gofmt -l .) && \
		if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted" >&2; exit 1; fi; \
	fi

peers: redis ## docs/PEERS.md: our locks beside other libraries', for hours; PEERS=-quick is a look in minutes
	$(GO) run ./internal/peercompare $(PEERS)

soak: redis ## every strategy for EACH (30s), then with 10,000 clients
	LOCKBENCH_SOAK=$(EACH) $(GO) test -run Soak -v -timeout 60m ./command

gate: redis ## prove that the regression gate fires and does not cry wolf: a quarter of an hour
	LOCKBENCH_GATE=$(CURDIR)/gate.md $(GO) test -run '^TestGate$$' -v -timeout 120m ./internal/gate; code=$$?; cat gate.md; exit $$code
