# shellcheck shell=bash disable=SC2034 # variables for whoever sources it
# Sourced by the scripts for the images: which Docker daemon is used, what the two clusters are called and where they listen.
# bash 3.2 of macOS is enough.

# Where the configuration folders for clients are put, as testenv expects them.
: "${HDFSCKPT_CACHE:=$HOME/.cache/hdfsckpt}"
docker_clients=$HDFSCKPT_CACHE/docker
# Data, log, socket and pid of a daemon that up.sh starts because none is there.
: "${HDFSCKPT_DOCKER_STATE:=/var/tmp/hdfsckpt-docker}"
export HDFS_IMAGE=${HDFS_IMAGE:-hdfsckpt-hdfs:latest}
begin=$SECONDS

say() { printf '%3d s  %s\n' $((SECONDS - begin)) "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# daemon_answers finds the daemon of the machine, or the one that up.sh has started.
daemon_answers() {
  docker version >/dev/null 2>&1 && return
  [ -S "$HDFSCKPT_DOCKER_STATE/docker.sock" ] || return 1
  export DOCKER_HOST=unix://$HDFSCKPT_DOCKER_STATE/docker.sock
  docker version >/dev/null 2>&1
}

compose() {
  if docker compose version >/dev/null 2>&1; then docker compose "$@"; else docker-compose "$@"; fi
}

# profile NAME NETWORK: sets the compose files, the name of the project and the ports of "plain" or "kerberos", on the network
# "bridge" or "host". Both clusters may be up at once.
profile() {
  export COMPOSE_PROJECT_NAME=hdfsckpt-$1 HDFS_SECURE=false first_port=8000
  if [ "$1" = kerberos ]; then export HDFS_SECURE=true first_port=18000; fi
  export HDFS_RPC_PORT=$((first_port + 20)) HDFS_HTTP_PORT=$((first_port + 1870)) HDFS_DN1_PORT=$((first_port + 1866))
  export HDFS_DN2_PORT=$((first_port + 1876)) HDFS_DN3_PORT=$((first_port + 1886)) HDFS_KDC_PORT=10088
  client_dir=$docker_clients/$1
  files=(-f docker/compose.yaml)
  if [ "$1" = kerberos ]; then files=(-f docker/compose.yaml -f docker/compose.kerberos.yaml); fi
  if [ "$2" = host ]; then files=(-f docker/compose.host.yaml); fi
}
