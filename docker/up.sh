#!/usr/bin/env bash
# up.sh [--host] [plain] [kerberos]: builds the image, starts the clusters (both, if none is named), waits until they work, and writes
# for each a folder for HADOOP_CONF_DIR; HDFSCKPT_HDFS=docker finds it. --host uses the host's network (Linux) in place of
# published ports. HDFS_PROTECTION and HDFS_EXTRA are passed on, see hdfs.sh. down.sh undoes it.
#
# Where a Docker daemon answers, it is used. Otherwise, as root on Debian, docker.io is installed and a daemon of our own started;
# and where the public registry cannot be reached, the base image is made from the machine's Debian mirror.
set -euo pipefail
cd "$(dirname "$0")/.."
. docker/common.sh

network=bridge profiles=()
for argument in "$@"; do
  case $argument in
    --host) network=host ;;
    plain | kerberos) profiles+=("$argument") ;;
    *) echo "usage: up.sh [--host] [plain] [kerberos]" >&2; exit 2 ;;
  esac
done
[ ${#profiles[@]} -gt 0 ] || profiles=(plain kerberos)

install_package() { # PROGRAM PACKAGE: the package, where the program is missing
  ! command -v "$1" >/dev/null || return 0
  { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || die "$1 is missing: install it (on Debian: apt-get install $2)"
  say "installing $2"
  apt-get update -qq >"$HDFSCKPT_DOCKER_STATE/apt.log" 2>&1 || true # the list that is there may do
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$2" \
    >>"$HDFSCKPT_DOCKER_STATE/apt.log" 2>&1 || { tail -n 20 "$HDFSCKPT_DOCKER_STATE/apt.log" >&2; exit 1; }
}

start_daemon() { # DRIVER
  local state=$HDFSCKPT_DOCKER_STATE pid
  # A session of its own: the signals of this terminal are not for it.
  setsid nohup dockerd --host "unix://$state/docker.sock" --data-root "$state/data-$1" --exec-root "$state/exec" \
    --pidfile "$state/dockerd.pid" --storage-driver "$1" >"$state/dockerd.log" 2>&1 </dev/null &
  pid=$!
  for _ in $(seq 1 240); do
    daemon_answers && return
    kill -0 "$pid" 2>/dev/null || return 1
    sleep 0.25
  done
  kill "$pid" 2>/dev/null || true
  return 1
}

ensure_daemon() {
  ! daemon_answers || return 0
  [ "$(id -u)" = 0 ] || die "no Docker daemon answers (docker version), and only root can start one"
  mkdir -p "$HDFSCKPT_DOCKER_STATE"
  install_package dockerd docker.io
  start_daemon overlay2 || start_daemon vfs || {
    tail -n 20 "$HDFSCKPT_DOCKER_STATE/dockerd.log" >&2
    die "no Docker daemon answers, and none can be started"
  }
  say "started a Docker daemon (pid $(cat "$HDFSCKPT_DOCKER_STATE/dockerd.pid")); docker/down.sh --daemon ends it"
}

# The same package server that this machine uses.
# shellcheck disable=SC2016 # a format
debian_mirror() { apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | head -n 1; }

ensure_base() {
  local base=debian:bookworm-slim root log
  ! docker image inspect "$base" >/dev/null 2>&1 || return 0
  if docker pull -q "$base" >/dev/null 2>&1; then return; fi
  [ "$(id -u)" = 0 ] || die "$base cannot be pulled, and only root can make it from a Debian mirror"
  mkdir -p "$HDFSCKPT_DOCKER_STATE"
  install_package debootstrap debootstrap
  say "$base cannot be pulled: making it from the Debian mirror"
  root=$(mktemp -d /dev/shm/hdfsckpt-base.XXXXXX 2>/dev/null || mktemp -d) # in memory where that works: dpkg syncs a lot
  log=$HDFSCKPT_DOCKER_STATE/debootstrap.log
  # shellcheck disable=SC2064 # this folder
  trap "rm -rf '$root'" EXIT
  debootstrap --variant=minbase bookworm "$root" "$(debian_mirror)" >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
  # Certificates that the machine trusts beside the public ones, of a proxy perhaps: the build downloads as the machine does.
  mkdir -p "$root/usr/local/share/ca-certificates"
  cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin "$root"/var/lib/apt/lists/* \
    "$root"/usr/share/{doc,man,locale}/* "${root:?}"/dev/*
  tar -C "$root" -c . | docker import --change 'CMD ["bash"]' - "$base" >/dev/null
}

build_image() {
  local log=$docker_clients/build.log
  docker buildx version >/dev/null 2>&1 || export DOCKER_BUILDKIT=0 # without buildx there is only the old builder
  docker build -q -f docker/Dockerfile -t "$HDFS_IMAGE" . >/dev/null 2>"$log" || { tail -n 40 "$log" >&2; die "the image cannot be built"; }
  say "the image $HDFS_IMAGE is built"
}

containers() { docker ps "$@" --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME"; }

await_healthy() {
  local wanted
  wanted=$(compose "${files[@]}" ps -q | wc -l)
  for _ in $(seq 1 360); do
    [ "$(containers -q --filter health=healthy | wc -l)" -lt "$wanted" ] || return 0
    [ "$(containers -aq --filter status=exited | wc -l)" -eq 0 ] || break
    sleep 0.5
  done
  containers -a >&2
  compose "${files[@]}" logs --tail=30 >&2
  die "$COMPOSE_PROJECT_NAME does not work"
}

property() { printf '  <property><name>%s</name><value>%s</value></property>\n' "$1" "$2"; }

site() { # FILE NAME VALUE…
  local file=$1
  shift
  {
    echo '<configuration>'
    while [ $# -gt 0 ]; do property "$1" "$2"; shift 2; done
    echo '</configuration>'
  } >"$file"
}

write_client() {
  local secure=()
  mkdir -p "$client_dir.new/conf"
  if [ "$HDFS_SECURE" = true ]; then
    local kdc
    kdc=$(containers -q --filter label=com.docker.compose.service=kdc)
    [ -n "$kdc" ] || kdc=$(containers -q)
    docker cp "$kdc:/krb5" "$client_dir.new/krb5"
    secure=(hadoop.security.authentication kerberos hadoop.rpc.protection "${HDFS_PROTECTION:-authentication}")
  fi
  site "$client_dir.new/conf/core-site.xml" fs.defaultFS "hdfs://localhost:$HDFS_RPC_PORT" ${secure[@]+"${secure[@]}"}
  if [ "$HDFS_SECURE" = true ]; then
    secure=(dfs.namenode.kerberos.principal nn/localhost@HDFSCKPT.TEST dfs.datanode.kerberos.principal dn/hdfs.test@HDFSCKPT.TEST
      dfs.data.transfer.protection "${HDFS_PROTECTION:-authentication}" dfs.block.access.token.enable true)
  fi
  site "$client_dir.new/conf/hdfs-site.xml" dfs.namenode.rpc-address "localhost:$HDFS_RPC_PORT" \
    dfs.namenode.http-address "localhost:$HDFS_HTTP_PORT" dfs.replication 3 dfs.client.use.datanode.hostname true \
    ${secure[@]+"${secure[@]}"}
  rm -rf "$client_dir"
  mv "$client_dir.new" "$client_dir"
}

mkdir -p "$docker_clients"
ensure_daemon
docker compose version >/dev/null 2>&1 || { mkdir -p "$HDFSCKPT_DOCKER_STATE"; install_package docker-compose docker-compose; }
ensure_base
build_image
for name in "${profiles[@]}"; do
  profile "$name" "$network"
  compose "${files[@]}" up -d --no-build >/dev/null 2>"$docker_clients/up.log" || { cat "$docker_clients/up.log" >&2; exit 1; }
done
for name in "${profiles[@]}"; do
  profile "$name" "$network"
  rm -rf "$client_dir" "$client_dir.new"
  await_healthy
  write_client
  say "$name works: export HADOOP_CONF_DIR=$client_dir/conf"
done
