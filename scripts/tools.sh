#!/usr/bin/env bash
# Prints the folder with the tools that tools/go.mod pins, built first if it is not there. The folder's name is made of
# what decides its content, so an upgrade builds anew and two checkouts can share one cache.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${HDFSCKPT_CACHE:-$HOME/.cache/hdfsckpt}
version=$(go env GOVERSION GOOS GOARCH | tr '\n' '-')
content=$(cat tools/go.mod tools/go.sum | cksum | tr ' ' '-')
dir=$cache/tools/$version$content

if [ ! -d "$dir" ]; then
  echo "building the tools of tools/go.mod, once (about 62 MB of modules to download, 1.5 minutes on 2 cores) …" >&2
  mkdir -p "$cache/tools"
  part=$(mktemp -d "$cache/tools/.part-XXXXXX")
  trap 'rm -rf "$part"' EXIT
  # GOFLAGS may ask for another module mode, and GOOS/GOARCH for another machine.
  GOFLAGS='' GOWORK=off GOOS='' GOARCH='' go build -C tools -trimpath -buildvcs=false -ldflags='-s -w' -o "$part/" tool 2> >(grep -v "^go: downloading" >&2)
  # Someone else may have been faster; the two results are the same.
  mv "$part" "$dir" 2>/dev/null || [ -d "$dir" ]
fi
echo "$dir"
