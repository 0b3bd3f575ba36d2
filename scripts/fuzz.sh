#!/usr/bin/env bash
# fuzz.sh TIME PACKAGE…: runs every fuzz target for TIME. A crash leaves its input below testdata/fuzz, to be committed
# with the repair.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/parts.sh

fuzztime=$1
shift
for package in $(go list "$@"); do
  for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
    part "${package##*/} $target" go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 10s "$package"
  done
done
if [ ${#parts_names[@]} -eq 0 ]; then
  echo "no fuzz targets in $*" >&2
  exit 1
fi
summary
