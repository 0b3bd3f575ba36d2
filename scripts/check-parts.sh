# Sourced after parts.sh: the parts of `make check`. TESTFLAGS is added to every `go test`.

check_parts() {
  local tools
  if ! tools=$(scripts/tools.sh); then
    record tools 0 FAILED
    return
  fi
  part format check_format "$tools"
  part modules check_modules
  part architecture go test -count=1 ./internal/architecture
  part vet go vet ./...
  part "$(other_os) (vet, build)" check_other_os
  part lint "$tools/golangci-lint" run --allow-serial-runners
  if has_race; then
    part "unit, fuzz seeds, race" check_tests -race
    part "unit, not under race" check_tests_without_race
  else
    part "unit, fuzz seeds" check_tests
    left_out race "it needs cgo and a C compiler"
  fi
}

check_format() {
  "$1/golangci-lint" fmt --diff || {
    echo "run: make fmt" >&2
    return 1
  }
}

check_modules() {
  go mod tidy -diff || {
    echo "run: go mod tidy" >&2
    return 1
  }
}

# The library and the command are for Linux and macOS; the one we are not on is at least compiled, tests included. The
# servers for tests run on Linux only.
other_os() {
  if [ "$(go env GOHOSTOS)" = darwin ]; then echo linux; else echo darwin; fi
}

check_other_os() (
  local packages programs
  export GOOS CGO_ENABLED=0
  GOOS=$(other_os)
  packages=$(go list ./... | grep -v '/testenv')
  programs=$(go list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./... | grep -v '/testenv')
  # shellcheck disable=SC2086 # lists of words
  go vet $packages && go build -o /dev/null $programs
)

has_race() {
  [ "$(go env CGO_ENABLED)" = 1 ] && command -v "$(go env CC | cut -d' ' -f1)" >/dev/null
}

# The architecture tests have their part above, real servers theirs in `make test`.
check_tests() {
  # shellcheck disable=SC2046,SC2086 # lists of words
  HDFSCKPT_HDFS=none HDFSCKPT_ENGINES=none HDFSCKPT_REQUIRE='' \
    go test ${TESTFLAGS:-} "$@" $(go list ./... | grep -v '/internal/architecture$')
}

# What cannot run under race (counted allocations, compared times) or is cut short there (sweeps) is in test files with
# `//go:build !race`. Packages that have one are tested without race too.
check_tests_without_race() {
  local packages
  packages=$(find . -name '*_test.go' -not -path './.*/*' -not -path '*/testdata/*' -exec grep -l '^//go:build .*!race' {} + |
    sed 's|/[^/]*$||' | sort -u)
  if [ -z "$packages" ]; then
    echo "there are none"
    return
  fi
  # shellcheck disable=SC2086 # lists of words
  HDFSCKPT_HDFS=none HDFSCKPT_ENGINES=none HDFSCKPT_REQUIRE='' go test ${TESTFLAGS:-} $packages
}
