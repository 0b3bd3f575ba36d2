# Sourced after parts.sh: the parts that start real processes and kill them.

process_parts() {
  part "kill -9 sweep ($1 kills)" kill9 HDFSCKPT_KILL9 "$1" AcknowledgedCheckpointSurvivesKill9
  part demo make --no-print-directory demo
  if [ -d testenv ]; then
    part "real servers" real_servers
    part "memory on a million objects" many_objects
    part "kill -9 sweep on HDFS (${KILLS_HDFS:-20})" kill9 HDFSCKPT_KILL9_HDFS "${KILLS_HDFS:-20}" AcknowledgedCheckpointOnHDFSSurvivesKill9
    if command -v java >/dev/null && command -v mvn >/dev/null || [ -n "${HDFSCKPT_REQUIRE:-}" ]; then
      part "demo on HDFS" make --no-print-directory demo-hdfs
    else
      left_out "demo on HDFS" "it needs a JDK and Maven"
    fi
  fi
}

# The same test runs with a tenth of it in check.
many_objects() {
  HDFSCKPT_MANY_OBJECTS=1000000 go test -count=1 -timeout 30m -run TestMemoryDoesNotGrowWithTheMetadata ./cmd/hdfsckpt
}

# testenv itself, which installs what is missing; then every package whose tests ask it for servers, and kerberos, whose tests
# start a KDC of their own.
real_servers() {
  # shellcheck disable=SC2046 # a list of words
  go test -count=1 -timeout 40m ./testenv/... &&
    go test -count=1 -timeout 40m $([ ! -d kerberos ] || echo ./kerberos) $(server_packages)
}

# server_packages lists the packages whose tests ask testenv for servers, without testenv itself.
server_packages() {
  go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... |
    awk '/[[ ]github.com\/hdfsckpt\/hdfsckpt\/testenv[] ]/ && $1 !~ /\/testenv/ {print $1}'
}

# kill9 VARIABLE KILLS TEST: the sweep is an ordinary test that needs to be asked for, because it takes minutes. Asking and getting
# none is a failure; where there is nothing to run it on, the test itself says so in a line, or fails if it is required.
kill9() {
  local out status=0
  out=$(mktemp)
  env "$1=$2" go test -count=1 -v -timeout 30m -run "$3" ./examples/wordcount >"$out" 2>&1 || status=$?
  grep -vE '^=== (RUN|PAUSE|CONT|NAME)' "$out"
  if [ "$status" -eq 0 ] && ! grep -qE '^--- (PASS|SKIP): .*Kill9' "$out"; then
    echo "no kill -9 test ran" >&2
    status=1
  fi
  rm -f "$out"
  return "$status"
}
