//! Inodes that get new numbers by a shrink: all names, and all that names them, follow.

use crate::shrink::{MIB, device, resize, run_mounted, same, shrink, shrink_with};
use std::path::Path;
use undercroft_judges::{Xfsprogs, image, kernel};
use undercroft_testkit::xfs::judged;
use undercroft_xfs::Volume;
use undercroft_xfs::maintain::{ShrinkOptions, ShrinkTarget};

/// Makes every kind of inode in every group, as the kernel puts directories in one after the other:
/// directories of all forms below one another, files in one piece and in many, with shared and
/// unwritten blocks, with attributes of all forms, with one name and with many.
///
/// What is made by the hundred is made by one process: one each took most of the time of a test.
const SCRIPT: &str = r##"
attributes() {
    echo "# file: $1"
    for i in $(seq $2); do echo "user.attribute-$i=\"value of number $i\""; done
}
for d in $(seq 24); do
    mkdir -p d$d/deeper/deepest d$d/empty
    for i in $(seq $((d * 3))); do echo "$d $i" > d$d/file-$i; done
    head -c $((d * 9000)) /dev/urandom > d$d/deeper/data
    ln -s "$(head -c $((d * 40)) /dev/zero | tr '\0' s)" d$d/link
    mkfifo d$d/fifo
    mknod d$d/device c 1 3
    for i in $(seq $((d % 5))); do setfattr -n user.small-$i -v $i d$d/deeper/data; done
    ln d$d/file-1 d$((d % 24 + 1))-other-$d
done
setfattr -n user.big -v "$(head -c 30000 /dev/zero | tr '\0' x)" d3/deeper/data
setfattr -n user.big -v "$(head -c 5000 /dev/zero | tr '\0' y)" d4/deeper
{ attributes d5/file-3 150; echo; attributes d7 90; } | setfattr --restore=-
for d in 2 6 11; do
    for i in $(seq 0 2 700); do
        echo "pwrite -q -i /dev/urandom $((i * 4096)) 4096"
        test $((i % 100)) != 0 || echo fdatasync
    done | xfs_io -f d$d/pieces
done
fallocate -l 3M d8/unwritten
head -c 30000 /dev/urandom | dd of=d8/unwritten bs=4096 seek=40 conv=notrunc status=none
for i in $(seq 1300); do echo > d9/a-name-with-a-long-tail-of-characters-$i; done
seq -f d10/directory-%g 400 | xargs mkdir
for i in $(seq 40); do echo > d12/a-name-of-a-directory-in-one-block-$i; done
perl -e 'link "d13/file-2", "d12/deeper/another-name-with-a-long-tail-$_" or die for 1..900'
for d in $(seq 24); do ln d14/file-4 d$d/deeper/deepest/link-to-the-same; done
if cp --reflink=always d15/deeper/data d16/deeper/copy 2> /dev/null; then
    for d in $(seq 17 24); do cp --reflink=always d15/deeper/data d$d/deeper/copy; done
    head -c 9000 /dev/urandom | dd of=d18/deeper/copy bs=4096 seek=3 conv=notrunc status=none
fi
rm d2/file-2 d9/a-name-with-a-long-tail-of-characters-1*
sync
"##;

/// A volume by the kernel with all of this.
pub(crate) fn spread(image: &Path, size: u64, arguments: &[&str]) {
    Xfsprogs::newest().unwrap().mkfs(image, size, arguments).unwrap();
    run_mounted(image, SCRIPT, &["spread"]);
}

/// Has the kernel change everything that moved, remove it, and grow the volume.
fn used_by_the_kernel(image: &Path, size: u64, what: &str) {
    resize(image, size);
    let script = "for d in d*; do test ! -d $d || { echo x > $d/new; mkdir $d/more; \
                  mv $d/deeper $d/more; echo y >> $d/more/deeper/data; }; done; sync; \
                  rm -r d1 d2 d3 d9 d10 d13; xfs_growfs -d . > /dev/null; rm -r d*; sync";
    run_mounted(image, script, &[what]);
    judged::sound(image, &format!("{what}, emptied and grown again"));
}

#[test]
fn inodes_get_new_numbers() {
    if !kernel::available_or_report() {
        return;
    }
    let default = ["-d", "agcount=8", "-l", "agnum=0"];
    let no_pointers = ["-d", "agcount=8", "-l", "agnum=0", "-n", "parent=0"];
    let small = ["-b", "size=1024", "-d", "agcount=8", "-l", "agnum=0", "-n", "size=4096"];
    let large = ["-d", "agcount=4", "-i", "size=2048", "-n", "size=65536,parent=0"];
    let old = [
        "-d",
        "agcount=8",
        "-l",
        "agnum=0",
        "-m",
        "reflink=0,finobt=0",
        "-i",
        "sparse=0",
        "-n",
        "parent=0",
    ];
    let cases: [(&str, u64, &[&str]); 6] = [
        ("the default format", 130, &default),
        ("no parent pointers", 130, &no_pointers),
        ("1 KiB blocks", 150, &small),
        ("large directory blocks and inodes, a journal that moves", 256, &large),
        ("without the newer trees", 250, &old),
        ("the smallest", 0, &default),
    ];
    for (name, to, arguments) in cases {
        let directory = tempfile::tempdir().unwrap();
        let (ours, before) = (directory.path().join("ours"), directory.path().join("before"));
        spread(&ours, 512 * MIB, arguments);
        image::copy(&ours, &before).unwrap();
        let target = if to == 0 { ShrinkTarget::Smallest } else { ShrinkTarget::Bytes(to * MIB) };
        let done = shrink(&ours, target).unwrap();
        assert!(done.inodes > 200, "{name}: {done:?}");
        judged::sound(&ours, name);
        same(&before, &ours);
        judged::sound(&ours, &format!("{name}, after mounts"));
        used_by_the_kernel(&ours, 512 * MIB, name);
    }
}

#[test]
fn inodes_may_keep_their_numbers() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    spread(&image, 512 * MIB, &["-d", "agcount=8", "-l", "agnum=0"]);
    let before = std::fs::read(&image).unwrap();
    let target = ShrinkTarget::Bytes(130 * MIB);
    let options = ShrinkOptions { target, keep_inode_numbers: true };
    let message = shrink_with(&image, options).unwrap_err().to_string();
    assert!(message.contains("inodes are in what would go: "), "{message}");
    assert!(message.contains("the smallest size"), "{message}");
    assert!(std::fs::read(&image).unwrap() == before, "the volume was changed");
    let volume = Volume::open(device(&image)).unwrap();
    let planned = undercroft_xfs::maintain::shrinkage(&volume, options).unwrap();
    assert!(planned.inodes > 500 && !planned.obstacles.is_empty(), "{planned:?}");
}
