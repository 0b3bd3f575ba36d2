#!/usr/bin/env bash
# stress.sh ROUNDS: the tests again and again in random order, a long kill -9 sweep, then CHAOS (20) rounds of every fault of a real
# HDFS. The seeds are in the output.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/parts.sh
. scripts/check-parts.sh
. scripts/process-parts.sh

race=
if has_race; then race=-race; else left_out race "it needs cgo and a C compiler"; fi
# shellcheck disable=SC2086 # may be empty
part "$1 rounds of tests" check_tests $race -count="$1" -shuffle=on -timeout 60m
kills=$((4 * ${KILLS:-50}))
part "kill -9 sweep ($kills kills)" kill9 HDFSCKPT_KILL9 "$kills" AcknowledgedCheckpointSurvivesKill9
part "chaos on HDFS (${CHAOS:-20} rounds)" env HDFSCKPT_CHAOS="${CHAOS:-20}" \
  go test -count=1 -v -timeout 120m -run 'TestChaos|TestReplicas|TestReadsGoOn|TestAStopped' ./hdfsfs/internal/pipeline ./hdfsfs/internal/blockread
summary
