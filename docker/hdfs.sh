#!/usr/bin/env bash
# hdfs.sh ROLE: one role of a small HDFS for tests; the entrypoint of the image.
#   namenode | datanode | kdc   that one process, in the foreground
#   all-in-one                  NameNode, HDFS_DATANODES DataNodes and, when secure, the KDC
#   health                      exit 0 once what HDFS_DATA/role names is ready
#   wait [SECONDS]              poll health until it is ready (default 120 s)
set -euo pipefail

: "${HDFS_HOME:=$(cd "$(dirname "$0")" && pwd)}"
: "${HDFS_DATA:=/data}"
: "${HDFS_BIND:=0.0.0.0}"                # address that the servers listen on
: "${HDFS_NAMENODE_HOST:=localhost}"     # where DataNodes find the NameNode
: "${HDFS_ADVERTISED_HOST:=localhost}"   # host name that clients with use.datanode.hostname dial
: "${HDFS_RPC_PORT:=8020}"
: "${HDFS_HTTP_PORT:=9870}"
: "${HDFS_DATANODE_PORT:=9866}"          # a client dials the very port the DataNode listens on: publish it unchanged
: "${HDFS_DATANODE_HTTP_PORT:=$((HDFS_DATANODE_PORT - 2))}"
: "${HDFS_DATANODE_IPC_PORT:=$((HDFS_DATANODE_PORT + 1))}"
: "${HDFS_DATANODES:=3}"                 # all-in-one: how many; DataNode i listens on HDFS_DATANODE_PORT + 10 * i
: "${HDFS_REPLICATION:=3}"
: "${HDFS_BLOCK_SIZE:=134217728}"
: "${HDFS_HEAP:=192m}"
: "${HDFS_SECURE:=false}"
: "${HDFS_PROTECTION:=authentication}"   # authentication | integrity | privacy, for RPC and block data
: "${HDFS_REALM:=HDFSCKPT.TEST}"
: "${HDFS_KDC_HOST:=127.0.0.1}"
: "${HDFS_KDC_PORT:=10088}"
: "${HDFS_KRB5_DIR:=$HDFS_DATA/krb5}"    # keytabs and krb5.conf, shared with the clients
: "${HDFS_LOG_LEVEL:=INFO}"
: "${HDFS_EXTRA:=}"                      # more hdfs-site settings: "name=value name=value"
: "${HDFS_JAVA_OPTS:=}"

say() { echo "hdfs.sh: $*" >&2; }
prop() { printf '  <property><name>%s</name><value>%s</value></property>\n' "$1" "$2"; }

krb5_conf() { # FILE KDC_HOST
  cat >"$1.tmp.$$" <<EOF
[libdefaults]
  default_realm = $HDFS_REALM
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  default_tkt_enctypes = aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96
  default_tgs_enctypes = aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96
  permitted_enctypes = aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96
[realms]
  $HDFS_REALM = {
    kdc = $2:$HDFS_KDC_PORT
  }
[domain_realm]
  localhost = $HDFS_REALM
EOF
  mv "$1.tmp.$$" "$1"
}

configure() { # ROLE-DIR DATANODE-PORT DATANODE-HTTP-PORT DATANODE-IPC-PORT
  local dir=$1 conf=$1/conf
  # Maven Central's hadoop-hdfs jar has no web pages; the servers only want the folders on their class path.
  mkdir -p "$conf"/webapps/{hdfs,datanode,static}
  {
    echo '<configuration>'
    prop fs.defaultFS "hdfs://$HDFS_NAMENODE_HOST:$HDFS_RPC_PORT"
    prop hadoop.tmp.dir "$dir/tmp"
    prop hadoop.http.staticuser.user hdfs
    prop ipc.client.connect.retry.interval 500
    prop ipc.client.connect.max.retries 120
    if [ "$HDFS_SECURE" = true ]; then
      prop hadoop.security.authentication kerberos
      prop hadoop.rpc.protection "$HDFS_PROTECTION"
      # shellcheck disable=SC2016 # not variables
      prop hadoop.security.auth_to_local 'RULE:[2:$1@$0](nn@.*)s/.*/hdfs/ RULE:[2:$1@$0](dn@.*)s/.*/hdfs/ DEFAULT'
    fi
    echo '</configuration>'
  } >"$conf/core-site.xml"
  {
    echo '<configuration>'
    prop dfs.replication "$HDFS_REPLICATION"
    prop dfs.blocksize "$HDFS_BLOCK_SIZE"
    prop dfs.namenode.name.dir "file://$dir/name"
    prop dfs.namenode.rpc-bind-host "$HDFS_BIND"
    prop dfs.namenode.http-address "$HDFS_BIND:$HDFS_HTTP_PORT"
    prop dfs.namenode.datanode.registration.ip-hostname-check false
    prop dfs.namenode.safemode.extension 0
    prop dfs.namenode.heartbeat.recheck-interval 2000
    prop dfs.namenode.handler.count 8
    prop dfs.heartbeat.interval 1
    prop dfs.datanode.data.dir "file://$dir/data"
    prop dfs.datanode.hostname "$HDFS_ADVERTISED_HOST"
    prop dfs.datanode.address "$HDFS_BIND:$2"
    prop dfs.datanode.http.address "$HDFS_BIND:$3"
    prop dfs.datanode.ipc.address "$HDFS_BIND:$4"
    prop dfs.datanode.handler.count 4
    prop dfs.client.use.datanode.hostname true
    if [ "$HDFS_SECURE" = true ]; then
      # Fixed "localhost" service names instead of _HOST: the same principal is right for a client on the
      # host (published ports or host networking) and for one on the containers' own network. Not so the
      # DataNodes: Hadoop's RPC client binds its socket to the host of its own principal where that is a local
      # address, so dn/localhost could not leave the container.
      prop dfs.block.access.token.enable true
      prop dfs.data.transfer.protection "$HDFS_PROTECTION"
      prop dfs.encrypt.data.transfer.cipher.suites AES/CTR/NoPadding
      prop ignore.secure.ports.for.testing true
      prop dfs.namenode.kerberos.principal "nn/localhost@$HDFS_REALM"
      prop dfs.namenode.keytab.file "$HDFS_KRB5_DIR/nn.keytab"
      prop dfs.datanode.kerberos.principal "dn/hdfs.test@$HDFS_REALM"
      prop dfs.datanode.keytab.file "$HDFS_KRB5_DIR/dn.keytab"
      prop dfs.web.authentication.kerberos.principal "HTTP/localhost@$HDFS_REALM"
      prop dfs.web.authentication.kerberos.keytab "$HDFS_KRB5_DIR/http.keytab"
    fi
    local pair
    for pair in $HDFS_EXTRA; do prop "${pair%%=*}" "${pair#*=}"; done
    echo '</configuration>'
  } >"$conf/hdfs-site.xml"
  echo '*.periodMillis=100' >"$conf/hadoop-metrics2.properties" # tests count calls
  cat >"$conf/log4j.properties" <<EOF
log4j.rootLogger=$HDFS_LOG_LEVEL, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
log4j.logger.org.apache.hadoop.jmx.JMXJsonServlet=OFF
log4j.logger.http.requests=OFF
EOF
  if [ "$HDFS_SECURE" = true ]; then krb5_conf "$conf/krb5.conf" "$HDFS_KDC_HOST"; fi
}

jvm() { # ROLE-DIR: sets JVM, the java command line up to the class name
  JVM=(java "-Xmx$HDFS_HEAP" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xshare:auto
    -Djava.net.preferIPv4Stack=true -Dhadoop.home.dir=/
    --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.io=ALL-UNNAMED
    --add-opens=java.base/java.util=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED)
  if [ "$HDFS_SECURE" = true ]; then
    JVM+=("-Djava.security.krb5.conf=$1/conf/krb5.conf" -Dsun.security.krb5.disableReferrals=true)
  fi
  # shellcheck disable=SC2206
  JVM+=($HDFS_JAVA_OPTS -cp "$1/conf:$HDFS_HOME/lib/*")
  if [ "$HDFS_SECURE" != true ]; then export HADOOP_USER_NAME=hdfs; fi # the superuser's name
}

wait_file() { # FILE: up to 60 s
  local i
  for i in $(seq 1 300); do [ -s "$1" ] && return; sleep 0.2; done
  say "no $1 after 60 s"; exit 1
}

namenode() {
  local dir=$HDFS_DATA/nn
  configure "$dir" "$HDFS_DATANODE_PORT" "$HDFS_DATANODE_HTTP_PORT" "$HDFS_DATANODE_IPC_PORT"
  if [ "$HDFS_SECURE" = true ]; then wait_file "$HDFS_KRB5_DIR/ready"; fi
  jvm "$dir"
  if [ ! -d "$dir/name/current" ]; then
    "${JVM[@]}" org.apache.hadoop.hdfs.server.namenode.NameNode -format -nonInteractive >"$dir/format.log" 2>&1 ||
      { cat "$dir/format.log" >&2; exit 1; }
  fi
  exec "${JVM[@]}" org.apache.hadoop.hdfs.server.namenode.NameNode
}

datanode() { # INDEX
  local i=${1:-0} dir=$HDFS_DATA/dn${1:-0}
  configure "$dir" $((HDFS_DATANODE_PORT + 10 * i)) $((HDFS_DATANODE_HTTP_PORT + 10 * i)) $((HDFS_DATANODE_IPC_PORT + 10 * i))
  if [ "$HDFS_SECURE" = true ]; then wait_file "$HDFS_KRB5_DIR/ready"; fi
  jvm "$dir"
  exec "${JVM[@]}" org.apache.hadoop.hdfs.server.datanode.DataNode
}

kdc() {
  local dir=$HDFS_DATA/kdc
  mkdir -p "$dir" "$HDFS_KRB5_DIR"
  krb5_conf "$dir/krb5.conf" 127.0.0.1
  cat >"$dir/kdc.conf" <<EOF
[kdcdefaults]
  kdc_listen = $HDFS_BIND:$HDFS_KDC_PORT
  kdc_tcp_listen = $HDFS_BIND:$HDFS_KDC_PORT
[realms]
  $HDFS_REALM = {
    database_name = $dir/principal
    key_stash_file = $dir/stash
    acl_file = $dir/kadm5.acl
    max_life = 24h
    max_renewable_life = 168h
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }
[logging]
  kdc = STDERR
EOF
  export KRB5_CONFIG=$dir/krb5.conf KRB5_KDC_PROFILE=$dir/kdc.conf
  if [ ! -f "$dir/stash" ]; then
    rm -f "$HDFS_KRB5_DIR"/*.keytab "$HDFS_KRB5_DIR/ready"
    kdb5_util create -s -r "$HDFS_REALM" -P "test-only-$RANDOM$RANDOM" >/dev/null
    {
      local p
      for p in nn/localhost dn/hdfs.test HTTP/localhost; do
        echo "addprinc -randkey $p"
        local f=${p%%/*}; f=${f,,}
        echo "ktadd -k $HDFS_KRB5_DIR/$f.keytab $p"
      done
      for p in hdfs alice bob; do # hdfs is the superuser; the password is the name
        echo "addprinc -pw $p $p"
        echo "ktadd -norandkey -k $HDFS_KRB5_DIR/$p.keytab $p"
      done
    } | kadmin.local >"$dir/kadmin.log" 2>&1
  fi
  krb5_conf "$HDFS_KRB5_DIR/krb5.conf" 127.0.0.1 # for a client on the host
  chmod 0644 "$HDFS_KRB5_DIR"/*
  echo ready >"$HDFS_KRB5_DIR/ready"
  exec krb5kdc -n
}

all_in_one() {
  local pids=() i
  mkdir -p "$HDFS_DATA/run" "$HDFS_DATA/log"
  launch() { # NAME ROLE [INDEX]: a role in the background; its pid in run/NAME.pid (exec keeps the pid)
    "$0" "$2" ${3:+"$3"} >>"$HDFS_DATA/log/$1.log" 2>&1 &
    echo $! >"$HDFS_DATA/run/$1.pid"; pids+=($!)
  }
  if [ "$HDFS_SECURE" = true ]; then rm -f "$HDFS_KRB5_DIR/ready"; launch kdc kdc; fi
  launch nn namenode
  for i in $(seq 0 $((HDFS_DATANODES - 1))); do launch "dn$i" datanode "$i"; done
  trap 'kill "${pids[@]}" 2>/dev/null || true; wait || true; exit 0' TERM INT
  # A test may kill a DataNode by its pid file; the cluster ends when the NameNode does, or on a signal.
  local rc=0
  wait "$(cat "$HDFS_DATA/run/nn.pid")" || rc=$?
  say "the NameNode ended ($rc), see $HDFS_DATA/log/nn.log"
  tail -n 20 "$HDFS_DATA/log/nn.log" >&2
  kill "${pids[@]}" 2>/dev/null || true
  wait || true
  return "$rc"
}

http_get() { # PORT PATH
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$2" >&3
  cat <&3; exec 3>&-
}

health() {
  local role state live
  role=$(cat "$HDFS_DATA/role")
  case $role in
  kdc) [ -s "$HDFS_KRB5_DIR/ready" ] && (exec 3<>"/dev/tcp/127.0.0.1/$HDFS_KDC_PORT") ;;
  namenode) http_get "$HDFS_HTTP_PORT" '/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState' | grep -q '"FSState" *: *"Operational"' ;;
  datanode) http_get "$HDFS_DATANODE_HTTP_PORT" '/jmx?qry=Hadoop:service=DataNode,name=DataNodeInfo' | grep -q 'ActorState.*RUNNING' ;;
  all-in-one)
    state=$(http_get "$HDFS_HTTP_PORT" '/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState')
    live=$(sed -n 's/.*"NumLiveDataNodes" *: *\([0-9]*\).*/\1/p' <<<"$state")
    [[ $state == *'"Operational"'* ]] && [ "${live:-0}" -ge "$HDFS_DATANODES" ] ;;
  esac
}

case ${1:-all-in-one} in
namenode | kdc | all-in-one) mkdir -p "$HDFS_DATA"; [ -n "${HDFS_CHILD:-}" ] || echo "$1" >"$HDFS_DATA/role" ;;
datanode) mkdir -p "$HDFS_DATA"; [ -n "${HDFS_CHILD:-}" ] || echo datanode >"$HDFS_DATA/role" ;;
esac
case ${1:-all-in-one} in
namenode) namenode ;;
datanode) datanode "${2:-0}" ;;
kdc) kdc ;;
all-in-one) export HDFS_CHILD=1; all_in_one ;;
health) health >/dev/null 2>&1 ;;
wait)
  end=$((SECONDS + ${2:-120}))
  until health >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { say "not ready after ${2:-120} s"; exit 1; }
    if [ -s "$HDFS_DATA/run/nn.pid" ] && ! kill -0 "$(cat "$HDFS_DATA/run/nn.pid")" 2>/dev/null; then
      say "the NameNode is not running"; exit 1
    fi
    sleep 0.3
  done ;;
*) exec "$@" ;;
esac
