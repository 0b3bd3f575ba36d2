#!/usr/bin/env bash
# `make test-docker`: the tests that need an HDFS, on the images that `make docker-up` has started. What those lack (daemons that may be
# killed, other options) is left out and counted; a cluster that is up must be used.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/parts.sh
. scripts/process-parts.sh

clients=${HDFSCKPT_CACHE:-$HOME/.cache/hdfsckpt}/docker
need=
[ ! -d "$clients/plain" ] || need=hdfs
[ ! -d "$clients/kerberos" ] || need=$need,kerberos
if [ -z "$need" ]; then
  echo "nothing is up: run make docker-up" >&2
  exit 2
fi
export HDFSCKPT_HDFS=docker HDFSCKPT_REQUIRE=${need#,} HDFSCKPT_ENGINES=none

docker_tests() {
  local out status=0
  out=$(mktemp)
  # shellcheck disable=SC2046 # a list of words
  go test -count=1 -v -timeout 30m ./testenv $(server_packages) 2>&1 | tee "$out" | grep -E --line-buffered '^(ok|FAIL|panic|\?)'
  status=${PIPESTATUS[0]}
  if [ "$status" -ne 0 ]; then
    grep -vE '^ *(=== |--- (PASS|SKIP))' "$out"
  else
    # What a test of a cluster shows and nothing else: it cannot pass without one.
    if ! grep -q -- '--- PASS: TestEveryClusterServesItsUsers' "$out"; then
      echo "no test has used the images" >&2
      status=1
    fi
  fi
  printf '%d tests passed, %d left out:\n' "$(grep -c -- '^ *--- PASS' "$out")" "$(grep -c -- '^ *--- SKIP' "$out")"
  sed -n 's/^.*_test.go:[0-9]*: left out: /  /p' "$out" | sort | uniq -c
  rm -f "$out"
  return "$status"
}

part "HDFS tests on images (${need#,})" docker_tests
summary
