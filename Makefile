# Everything the project can do to itself. `make` alone prints the targets.
#
# Settings, all optional:
#   FUZZTIME=30s   time for each fuzz target                        (make fuzz)
#   PKG=./...      packages to measure or to fuzz                   (make bench, make fuzz)
#   BENCH=.        benchmarks to run, as `go test -bench` takes it  (make bench)
#   ROUNDS=5       repetitions of the tests                         (make stress)
#   KILLS=50       kills of the kill -9 sweep; make stress takes 4 times as many
#   KILLS_HDFS=20  kills of the same sweep on a real HDFS
#   CHAOS=20       rounds of each fault of a real HDFS            (make stress)
#   HDFSCKPT_CACHE where built tools are kept, default ~/.cache/hdfsckpt

export HDFSCKPT_CACHE ?= $(HOME)/.cache/hdfsckpt
export KILLS          ?= 50
export KILLS_HDFS     ?= 20
FUZZTIME ?= 30s
PKG      ?= ./...
BENCH    ?= .
ROUNDS   ?= 5

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)


.PHONY: check
check: ## format, vet, lint, architecture, unit tests, fuzz seeds, race; at most 4 minutes warm
	@scripts/check.sh

.PHONY: test
test: ## check + the parts with real processes: kill -9 sweep, demo; each prints its share of the time
	@scripts/test.sh

.PHONY: demo
demo: ## the main job: count words, be killed, recover, compare; at most 2 minutes
	@go run ./examples/wordcount demo

.PHONY: fmt
fmt: ## format all Go files in place
	@"$$(scripts/tools.sh)/golangci-lint" fmt

.PHONY: lint
lint: ## run the linters of .golangci.yml alone
	@"$$(scripts/tools.sh)/golangci-lint" run --allow-serial-runners

.PHONY: readme
readme: ## copy the embedding example from examples/embed into README.md
	@go test -count=1 ./internal/architecture -run '^TestReadmeExample$$' -update


.PHONY: capabilities
capabilities: ## write docs/capabilities.md from what the file systems declare
	@go test -count=1 ./internal/architecture -run '^TestCapabilities$$' -update

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (30s)
	@scripts/fuzz.sh "$(FUZZTIME)" $(PKG)

.PHONY: bench
bench: ## benchmarks 6 times each, median and spread; ratios where there is a rival
	@scripts/bench.sh "$(BENCH)" $(PKG)

.PHONY: stress
stress: ## all tests ROUNDS (5) times in random order under race, a long kill -9 sweep, chaos on HDFS
	@scripts/stress.sh "$(ROUNDS)"


.PHONY: demo-hdfs
demo-hdfs: ## the main job on a real HDFS that it starts, whose daemons are killed too; 2 to 4 minutes
	@scripts/demo-hdfs.sh

.PHONY: docker-up
docker-up: ## build and start HDFS as images, without and with Kerberos (needs Docker)
	@docker/up.sh

.PHONY: docker-down
docker-down: ## end what docker-up started
	@docker/down.sh

.PHONY: test-docker
test-docker: ## the HDFS tests against the images that are up
	@scripts/docker-test.sh
