# Every target has a line behind ## that `make help` prints.
SHELL := /bin/sh
.DEFAULT_GOAL := help

GO        ?= go
LINT_VER  := v2.15.0
LINT      := bin/golangci-lint-$(LINT_VER)
SUM_VER   := v1.13.0
SUM       := bin/gotestsum-$(SUM_VER)
SEED      ?= 1
SCENARIOS ?= scenarios
COUNT     ?= 500
VERSION   := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS   := -s -w -X main.version=$(VERSION)

export CGO_ENABLED

.PHONY: help build test test-again lint fmt chaos matrix chaos-sim chaos-process chaos-container mutants explore soak bench demo demo-down clean

help: ## Print the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

build: CGO_ENABLED = 0
build: ## Build bin/narad and bin/chaos as static binaries, and bin/narad-chaos, which tests of two releases run.
	@mkdir -p bin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/narad ./narad/cmd/narad
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/chaos ./harness/cmd/chaos
	$(GO) build -trimpath -tags chaos -ldflags '$(LDFLAGS)' -o bin/narad-chaos ./narad/cmd/narad

test: ## Run all tests with the race detector where a C compiler is there.
	@if command -v gcc >/dev/null 2>&1; then CGO_ENABLED=1 $(GO) test -race -timeout 10m ./...; else CGO_ENABLED=0 $(GO) test -timeout 10m ./...; fi

test-again: $(SUM) ## As test, but a test that fails is run by itself up to twice more, and named as flaky if it passes then. No race, panic or leak is forgiven.
	@rm -f bin/flaky.txt
	@if command -v gcc >/dev/null 2>&1; then race=-race; export CGO_ENABLED=1; else race=; export CGO_ENABLED=0; fi; \
	$(SUM) --format standard-quiet --packages ./... --rerun-fails=2 --rerun-fails-max-failures=3 --rerun-fails-abort-on-data-race \
		--rerun-fails-run-root-test --rerun-fails-report bin/flaky.txt -- $$race -timeout 10m
	@if [ -s bin/flaky.txt ]; then echo 'flaky tests, each is a defect to mend:'; cat bin/flaky.txt; fi

lint: $(LINT) ## Check formatting, vet and the strict linters.
	@test -z "$$(gofmt -l narad harness scenarios faults fakes reports)" || { echo 'not formatted, run make fmt:'; gofmt -l narad harness scenarios faults fakes reports; exit 1; }
	$(GO) vet ./...
	$(LINT) run ./...

fmt: ## Format the code.
	gofmt -w narad harness scenarios faults fakes reports

$(LINT):
	@mkdir -p bin/new
	GOBIN="$(CURDIR)/bin/new" $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VER)
	mv bin/new/golangci-lint $(LINT)

$(SUM):
	@mkdir -p bin/new
	GOBIN="$(CURDIR)/bin/new" $(GO) install gotest.tools/gotestsum@$(SUM_VER)
	mv bin/new/gotestsum $(SUM)

chaos: build ## The main job: run every scenario (or SCENARIOS=...) on the best backend there is and write the report.
	bin/chaos run --backend auto --retry-inconclusive 1 --seed $(SEED) $(SCENARIOS)

matrix: build ## Run every cell of the matrix of the sender in virtual time; make chaos runs each answer at each place once.
	bin/chaos run --backend sim --matrix all --seed $(SEED) scenarios/matrix

chaos-sim: build ## Run the scenarios in virtual time, in one process.
	bin/chaos run --backend sim --seed $(SEED) scenarios

chaos-process: build ## Run the scenarios on local processes.
	bin/chaos run --backend process --seed $(SEED) scenarios

chaos-container: build ## Run the scenarios on containers.
	bin/chaos run --backend container --seed $(SEED) scenarios

mutants: build ## Plant one bug at a time and fail unless a scenario catches it.
	bin/chaos mutants

explore: build ## Run random schedules in virtual time and shrink what fails (COUNT=500 SEED=1, or FOR=5m).
	bin/chaos explore $(if $(FOR),--for $(FOR),--count $(COUNT)) --seed $(SEED)

soak: build ## Play random rounds on real clusters for hours (FOR=8h SEED=1); report in reports/out/soak/latest.
	bin/chaos soak --backend auto --for $(or $(FOR),8h) --seed $(SEED)

bench: build ## Measure throughput against the floor of the same run.
	bin/chaos bench

demo: build ## Start two clusters, toxiproxy and a running link with docker compose.
	harness/demo/up

demo-down: ## Stop the demo and remove what it made.
	harness/demo/down

clean: ## Remove what was built and reported.
	rm -rf bin reports/out
