#!/usr/bin/env bash
# Says that a target comes with a later part, and exits 2: it must not look like success.
echo "make $1: not there yet; it comes with $2." >&2
exit 2
