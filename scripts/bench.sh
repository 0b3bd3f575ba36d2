#!/usr/bin/env bash
# bench.sh PATTERN PACKAGE…: runs the benchmarks 6 times, keeps the lines in bench.txt and prints their medians and spread.
# Where there is a rival, the benchmark measures it in the same run and reports the ratio as a metric of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

pattern=$1
shift
tools=$(scripts/tools.sh)
go test -run '^$' -bench "$pattern" -benchmem -count 6 -timeout 60m "$@" | grep -vE '^(PASS|ok|\?)' | tee bench.txt
if ! grep -q '^Benchmark' bench.txt; then
  echo "no benchmark matches $pattern" >&2
  exit 1
fi
echo
"$tools/benchstat" bench.txt
