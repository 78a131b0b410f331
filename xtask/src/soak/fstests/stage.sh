#!/bin/sh
# One test of xfstests on two volumes of ours, $STAGE/test and $STAGE/scratch, in a mount name space of
# its own. There mount(8) finds $UNDERCROFT as the program of the type fuse.undercroft, and df(1) says
# `fuse`, which is the name that the suite knows.
set -eu

own=$STAGE/own
mkdir -p "$own"
mount -t tmpfs own "$own"
mkdir "$own/upper" "$own/work" "$own/at-test" "$own/at-scratch"

sbin=$(readlink -f /sbin)
mount -t overlay -o "lowerdir=$sbin,upperdir=$own/upper,workdir=$own/work" own "$sbin"
ln -s "$UNDERCROFT" "$sbin/mount.fuse.undercroft"

df=$(command -v df)
cp "$df" "$own/df"
printf '#!/bin/sh\n"%s" "$@" | sed "s/ fuse\\.undercroft/ fuse/"\n' "$own/df" >"$own/df-of-the-suite"
chmod 755 "$own/df-of-the-suite"
mount --bind "$own/df-of-the-suite" "$df"

# The users that it wants.
cp /etc/passwd "$own/passwd"
cp /etc/group "$own/group"
number=61000
for user in fsgqa 123456-fsgqa fsgqa2; do
    echo "$user:*:$number:$number::/tmp:/bin/sh" >>"$own/passwd"
    echo "$user:*:$number:" >>"$own/group"
    number=$((number + 1))
done
mount --bind "$own/passwd" /etc/passwd
mount --bind "$own/group" /etc/group

cat >"$own/config" <<END
export FSTYP=fuse
export FUSE_SUBTYP=.undercroft
export TEST_DEV=$STAGE/test
export TEST_DIR=$own/at-test
export SCRATCH_DEV=$STAGE/scratch
export SCRATCH_MNT=$own/at-scratch
export MOUNT_OPTIONS="-o relatime"
export TEST_FS_MOUNT_OPTS="-o relatime"
export RESULT_BASE=$STAGE/results
END

cd "$SOURCE"
HOST_OPTIONS=$own/config timeout --kill-after=10 "$LIMIT" ./check "$TEST" 2>&1 || true

cd /
for place in "$own/at-test" "$own/at-scratch"; do
    while mountpoint -q "$place"; do
        "$UNDERCROFT" unmount --timeout 10 "$place"
    done
done

# A server goes on for a moment behind umount(8).
for try in $(seq 600); do
    pgrep -f "^[^ ]*mount.fuse.undercroft $STAGE/" >/dev/null || exit 0
    sleep 0.1
done
echo "a server does not end" >&2
exit 1
