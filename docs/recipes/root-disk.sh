#!/bin/sh
# Builds a disk with a root file system in a CI job: no root, no loop device, no mount.
#
#     root-disk.sh SOURCE DISK
#
# SOURCE is a directory, an archive or a container image (`oci:DIR:TAG`, from `skopeo copy
# docker://NAME oci:DIR:TAG`). All files belong to root if it is a directory, since a checkout belongs
# to the user of the job. The same source gives the same disk.
set -eu
source=$1
disk=$2
owner=
[ ! -d "$source" ] || owner='--owner 0:0'

# shellcheck disable=SC2086 # two words, or none
undercroft build --disk gpt --verify --free 20% $owner "$source" "$disk"
undercroft check --partition 1 "$disk"
undercroft info --partition 1 "$disk"
