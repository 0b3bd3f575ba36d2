#!/usr/bin/env bash
# down.sh [--daemon]: ends what up.sh started, with all data. --daemon also ends the Docker daemon that up.sh started, by the pid that it
# remembered, and removes that daemon's images.
set -euo pipefail
cd "$(dirname "$0")/.."
. docker/common.sh

case ${1:-} in
  "" | --daemon) ;;
  *) echo "usage: down.sh [--daemon]" >&2; exit 2 ;;
esac

if daemon_answers; then
  for name in plain kerberos; do
    for network in bridge host; do
      profile "$name" "$network"
      [ -n "$(docker ps -aq --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME")" ] || continue
      compose "${files[@]}" down -v --remove-orphans >/dev/null 2>&1 || die "cannot end $COMPOSE_PROJECT_NAME"
      say "$name has ended"
    done
  done
fi
rm -rf "$docker_clients"

if [ "${1:-}" = --daemon ] && [ -s "$HDFSCKPT_DOCKER_STATE/dockerd.pid" ]; then
  pid=$(cat "$HDFSCKPT_DOCKER_STATE/dockerd.pid")
  [[ $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) != *"$HDFSCKPT_DOCKER_STATE"* ]] || kill "$pid"
  for _ in $(seq 1 120); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.25
  done
  umount "$HDFSCKPT_DOCKER_STATE"/exec/netns/* 2>/dev/null || true # it leaves its network namespace mounted
  rm -rf "$HDFSCKPT_DOCKER_STATE"
  say "the Docker daemon has ended"
fi
