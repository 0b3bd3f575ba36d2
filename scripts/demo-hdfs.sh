#!/usr/bin/env bash
# `make demo-hdfs`: the word count with its checkpoints on a real HDFS that is started for it and ended after it. Beside the job and its
# workers each DataNode is killed once and stays dead for a while, and at last the NameNode. No checkpoint may fail for a DataNode; the
# result must be exactly right.
#   PASSES=20   how often the input is counted
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
PATH=$work:$PATH
hdfs="hdfsenv --property hdfsckpt.use=demo" # a cluster of its own, whatever else runs
cleanup() {
  $hdfs down || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM # by way of cleanup

go build -o "$work/" ./testenv/cmd/hdfsenv ./examples/wordcount
echo "starting a NameNode and three DataNodes"
$hdfs up >"$work/environment"
# shellcheck source=/dev/null
. "$work/environment"
sed -n 's/^# //p' "$work/environment"
url=$(sed -n 's|^# \(hdfs://.*\)|\1|p' "$work/environment")

disturbances=()
# The NameNode's counters begin anew when it is restarted.
for order in "kill dn1" "restart dn1" "kill dn2" "restart dn2" "kill dn3" "restart dn3" calls; do
  disturbances+=(--endure "$hdfs $order")
done
disturbances+=(--disturb "$hdfs restart nn")
wordcount demo --dir "${url}demo" --passes "${PASSES:-20}" --interval 400ms --kills 6 "${disturbances[@]}" "$@" | tee "$work/out"

# "after N checkpoints: … calls", then a line of calls: "AddBlock 12, Create 12, …".
awk '/^after [0-9]+ checkpoints: .* calls$/ {checkpoints = $2}
  /^[A-Z][A-Za-z0-9]+ [0-9]+, / {for (i = 2; i <= NF; i += 2) calls += $i; print "calls of the NameNode for " checkpoints " checkpoints, those that failed and all restores included: " calls}
' "$work/out"
