#!/usr/bin/env bash
# `make check`: everything that needs no more than Go; race also needs a C compiler.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/parts.sh
. scripts/check-parts.sh

check_parts
summary
