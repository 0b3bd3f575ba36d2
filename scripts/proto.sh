#!/usr/bin/env bash
# Writes hdfsfs/internal/wire/*.pb.go from the .proto files beside them. The plugin is of the version of the protobuf module
# in go.mod; protoc is that of the system (apt-get install protobuf-compiler).
set -euo pipefail
cd "$(dirname "$0")/.."

command -v protoc >/dev/null || { echo "protoc is missing: apt-get install protobuf-compiler, or brew install protobuf" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
GOOS='' GOARCH='' go build -o "$dir/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go
# The paths from the root make the registered names of the files our own.
protoc --plugin="$dir/protoc-gen-go" --go_out=. --go_opt=paths=source_relative hdfsfs/internal/wire/*.proto
# The version of protoc differs from machine to machine and says nothing about the result.
sed -i.orig -E '/^\/\/ (versions:|	protoc(-gen-go)? +v)/d' hdfsfs/internal/wire/*.pb.go
rm hdfsfs/internal/wire/*.pb.go.orig
