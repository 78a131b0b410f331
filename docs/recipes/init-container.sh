#!/bin/sh
# Makes a cloned volume ready for a mount: replays its journal, checks it, and gives it another UUID,
# without which a kernel refuses to mount it beside its origin.
#
#     init-container.sh DEVICE [ORIGIN_UUID]
#
# With ORIGIN_UUID the UUID changes only if the volume still has that one, so that a second run
# changes nothing. Exit status: 0, or that of `undercroft fsck`: 4 for faults, 8 for anything else.
set -eu
volume=$1
origin=${2-}

status=0
undercroft fsck -p "$volume" || status=$?
# 1: the journal was replayed, and all is well.
[ "$status" -le 1 ] || exit "$status"

if [ -n "$origin" ]; then
    undercroft info --json "$volume" | grep -q "\"uuid\":\"$origin\"" || exit 0
fi
undercroft set --uuid generate "$volume"
