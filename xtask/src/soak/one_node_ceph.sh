#!/bin/bash
# One-node Ceph on loopback, an RBD image, and its NBD export. No systemd, no host names, no keys.
#   one_node_ceph.sh DIR start          monitor, OSD, pool (size 1), image, export on DIR/nbd.sock (name "disk")
#   one_node_ceph.sh DIR stop           everything down, state kept ("start" again resumes it)
#   one_node_ceph.sh DIR clean          stop, then remove DIR
#   one_node_ceph.sh DIR nbd-start | nbd-stop | nbd-kill | osd-start | osd-stop | osd-kill | mon-start | mon-stop
#   one_node_ceph.sh DIR status | uri
# Settings (environment, read at the first start): STORE=bluestore|memstore  SIZE=2G  BLOCK=6G (OSD capacity)
#   CACHE=writeback|none (librbd cache on or off; read at each nbd-start)
# Needs ceph-mon ceph-osd ceph-common qemu-utils qemu-block-extra. DIR: at most 80 characters, no spaces.
set -u
D=${1:?directory}; CMD=${2:?command}
case $D in /*) ;; *) D=$PWD/$D;; esac
[ ${#D} -le 80 ] || { echo "directory name too long for a unix socket" >&2; exit 2; }
case $D in *[\ ,:]*|/) echo "unsuitable directory" >&2; exit 2;; esac
STORE=${STORE:-bluestore} SIZE=${SIZE:-2G} BLOCK=${BLOCK:-6G} CACHE=${CACHE:-writeback}
export CEPH_CONF=$D/ceph.conf CEPH_ARGS=
die() { echo "one_node_ceph.sh: $*" >&2; for f in "$D"/log/*.out; do [ -s "$f" ] && tail -n 5 "$f" >&2; done; exit 1; }
c() { timeout -k 2 "${T:-20}" ceph --connect-timeout 15 "$@" </dev/null; }
r() { timeout -k 2 "${T:-30}" rbd "$@" </dev/null; }

pid() {                       # prints the pid of daemon $1 if it still runs and is still the same process
  local p s; read -r p s 2>/dev/null <"$D/run/$1.pid" || return 1
  [ "$(start_time "$p")" = "$s" ] && [ "$(state "$p")" != Z ] && echo "$p"
}
start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
state() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f1; }
spawn() {                     # name, command...: detached, own log, pid and start time noted
  local n=$1; shift
  pid "$n" >/dev/null && return 0
  setsid "$@" </dev/null >>"$D/log/$n.out" 2>&1 9>&- &
  local p=$!; disown; sleep 0.05
  echo "$p $(start_time $p)" >"$D/run/$n.pid"
}
halt() {                      # name, signal, seconds: then KILL
  local p i; p=$(pid "$1") || { rm -f "$D/run/$1.pid"; return 0; }
  kill -CONT "$p" 2>/dev/null; kill -"$2" "$p" 2>/dev/null
  for ((i = 0; i < $3 * 10; i++)); do pid "$1" >/dev/null || break; sleep 0.1; done
  pid "$1" >/dev/null && { kill -KILL "$p"; sleep 0.3; }
  rm -f "$D/run/$1.pid"
}
until_ok() {                  # seconds, command...
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}

configure() {
  rm -rf "$D"/{run,log,mon,osd}; mkdir -p "$D"/{run,log,mon,osd} || exit 1
  local p i busy fsid uuid
  for ((p = 0, i = 0; i < 50; i++)); do     # a free port for the monitor; the OSD looks for its own above it
    p=$((20000 + RANDOM % 9000)); busy=$( (exec 3<>/dev/tcp/127.0.0.1/$p) 2>/dev/null && echo y)
    [ -z "$busy" ] && break
  done
  fsid=$(cat /proc/sys/kernel/random/uuid) uuid=$(cat /proc/sys/kernel/random/uuid)
  echo "$uuid" >"$D/osd.uuid"; echo "$SIZE" >"$D/size"
  cat >"$D/ceph.conf" <<C
[global]
fsid = $fsid
mon_host = v2:127.0.0.1:$p/0
ms_bind_ipv4 = true
ms_bind_ipv6 = false
ms_bind_msgr1 = false
ms_bind_port_min = $((p + 1))
ms_bind_port_max = $((p + 300))
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
auth_allow_insecure_global_id_reclaim = true
mon_warn_on_insecure_global_id_reclaim = false
mon_warn_on_insecure_global_id_reclaim_allowed = false
run_dir = $D/run
log_file = $D/log/\$name.log
crash_dir = $D/log
pid_file =
keyring = /dev/null
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 16
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
mon_allow_pool_delete = true
mon_warn_on_pool_no_redundancy = false
osd_crush_chooseleaf_type = 0
[mon]
mon_data = $D/mon
mon_data_avail_warn = 2
mon_data_avail_crit = 1
mon_osd_down_out_interval = 86400
mon_cluster_log_file = $D/log/cluster.log
[osd]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
osd_data = $D/osd
osd_objectstore = $STORE
osd_memory_target = 1073741824
bluestore_block_size = $(numfmt --from=iec "$BLOCK")
memstore_device_bytes = $(numfmt --from=iec "$BLOCK")
crush_location = root=default host=h0
osd_client_watch_timeout = 5
osd_fast_shutdown = $([ "$STORE" = memstore ] && echo false || echo true)
[client]
objecter_tick_interval = 1
admin_socket =
log_file =
C
  monmaptool --create --clobber --fsid "$fsid" --addv a "[v2:127.0.0.1:$p]" "$D/monmap" >"$D/log/mon.out" 2>&1 || die "monmap"
  timeout 30 ceph-mon -c "$D/ceph.conf" -i a --mkfs --monmap "$D/monmap" >>"$D/log/mon.out" 2>&1 || die "monitor mkfs"
  : >"$D/mon/made"
}
mon_start() {
  spawn mon ceph-mon -c "$D/ceph.conf" -i a -f
  T=5 until_ok 30 c -s || die "monitor does not answer"
}
osd_start() {
  if [ ! -e "$D/osd/done" ]; then
    rm -rf "$D/osd"; mkdir "$D/osd"
    c osd new "$(cat "$D/osd.uuid")" 0 >/dev/null || die "osd new"
    timeout 120 ceph-osd -c "$D/ceph.conf" -i 0 --mkfs --osd-uuid "$(cat "$D/osd.uuid")" >>"$D/log/osd.out" 2>&1 || die "osd mkfs"
    : >"$D/osd/done"
  fi
  pid osd >/dev/null || c osd down 0 >/dev/null 2>&1    # a killed OSD is not noticed by the monitor by itself
  spawn osd ceph-osd -c "$D/ceph.conf" -i 0 -f
}
osd_up() { c osd stat | grep -q '1 osds: 1 up'; }
image() {
  until_ok 60 osd_up || die "OSD does not come up"
  c osd pool ls | grep -qx rbd || {
    c osd pool create rbd 16 16 replicated >/dev/null 2>&1 || die "pool create"
    c osd pool application enable rbd rbd >/dev/null 2>&1 || die "pool application"
  }
  until_ok 60 r ls rbd || die "pool does not answer"
  r info rbd/disk >/dev/null 2>&1 || r create --size "$(cat "$D/size")" --image-feature layering,exclusive-lock,object-map,fast-diff rbd/disk || die "image create"
}
nbd_answers() { timeout 5 qemu-img info --output=json "nbd+unix:///disk?socket=$D/nbd.sock"; }
nbd_start() {
  pid nbd >/dev/null || rm -f "$D/nbd.sock"
  spawn nbd qemu-nbd -k "$D/nbd.sock" -x disk -t -e 16 --cache="$CACHE" --discard=unmap \
    --image-opts "driver=raw,discard=unmap,file.driver=rbd,file.pool=rbd,file.image=disk,file.conf=$D/ceph.conf,file.discard=unmap"
  until_ok 40 nbd_answers || die "no NBD export"
}
stop_all() { halt nbd TERM 20; halt osd TERM 60; halt mon TERM 20; rm -f "$D/nbd.sock"; }

if [ "$CMD" = clean ] && [ ! -d "$D" ]; then exit 0; fi
if [ "$CMD" = start ] && [ ! -e "$D/.one-node-ceph" ]; then
  mkdir -p "$D" && [ -z "$(ls -A "$D")" ] && : >"$D/.one-node-ceph" || die "$D is not an empty directory"
fi
[ -e "$D/.one-node-ceph" ] || die "$D is not ours"
exec 9>"$D/lock"; flock -w 120 9 || die "another run is at work in $D"
case $CMD in
  start)     [ -e "$D/mon/made" ] || configure
             mon_start; osd_start; image; nbd_start; echo "nbd+unix:///disk?socket=$D/nbd.sock";;
  stop)      stop_all;;
  clean)     stop_all; rm -rf "$D";;
  nbd-start) nbd_start;;
  nbd-stop)  halt nbd TERM 20;;
  nbd-kill)  halt nbd KILL 5;;
  osd-start) osd_start; until_ok 60 osd_up || die "OSD does not come up";;
  osd-stop)  halt osd TERM 60;;
  osd-kill)  halt osd KILL 5;;
  mon-start) mon_start;;
  mon-stop)  halt mon TERM 20;;
  status)    for n in mon osd nbd; do echo "$n pid $(pid $n || echo -)"; done; c -s;;
  uri)       echo "nbd+unix:///disk?socket=$D/nbd.sock";;
  *)         echo "unknown command $CMD" >&2; exit 2;;
esac
