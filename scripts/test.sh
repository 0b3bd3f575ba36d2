#!/usr/bin/env bash
# `make test`: check, and the parts with real processes. Nothing comes from the test cache.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/parts.sh
. scripts/check-parts.sh
. scripts/process-parts.sh

TESTFLAGS=-count=1
check_parts
process_parts "${KILLS:-50}"
summary
