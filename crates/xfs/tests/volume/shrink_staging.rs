//! Blocks that a kernel set aside for copy-on-write and left: freed ahead of a shrink.

use crate::shrink::{MIB, device, run_mounted, same, shrink};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use undercroft_judges::{Xfsprogs, image, kernel};
use undercroft_testkit::xfs::judged;
use undercroft_xfs::Volume;
use undercroft_xfs::maintain::{self, ShrinkOptions, ShrinkTarget};

/// Overwrites shared files a little, for which the kernel sets much aside, and copies the image `$2` to
/// `$3` while that is so.
const SCRIPT: &str = r#"
for d in $(seq 16); do
    mkdir d$d
    head -c 3000000 /dev/urandom > d$d/a
    cp --reflink=always d$d/a d$d/b
    "$1" -c "cowextsize 4m" d$d/b
done
sync
for d in $(seq 16); do
    exec {file}<> d$d/b
    head -c 4096 /dev/urandom | dd of=d$d/b bs=4096 seek=2 conv=notrunc,fsync status=none
done
sync
fsfreeze --freeze .
cp --sparse=always "$2" "$3" || failed=1
fsfreeze --unfreeze .
test -z "$failed"
"#;

/// Empties the journal of a volume that has all its changes in place, which no kernel does that leaves
/// something set aside: other programs do.
fn empty_journal(image: &Path) {
    let xfsprogs = Xfsprogs::newest().unwrap();
    let told = xfsprogs.db(image, &["sb 0", "print logstart logblocks"]).unwrap();
    let number = |name: &str| -> u64 {
        let line = told.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (start, blocks) = (number("logstart"), number("logblocks"));
    let file = OpenOptions::new().write(true).open(image).unwrap();
    file.write_all_at(&vec![0; (blocks * 4096) as usize], start * 4096).unwrap();
    xfsprogs.db_expert(image, &["logformat -c 9"]).unwrap();
}

#[test]
fn what_was_set_aside_for_copy_on_write_is_freed() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [image, frozen, emptied] =
        ["image", "frozen", "emptied"].map(|name| directory.path().join(name));
    let xfsprogs = Xfsprogs::newest().unwrap();
    xfsprogs.mkfs(&image, 512 * MIB, &["-d", "agcount=8", "-l", "agnum=0"]).unwrap();
    let tool = xfsprogs.tool("xfs_io").unwrap().to_owned();
    let paths = [&tool, &image, &frozen].map(|path| path.to_str().unwrap());
    run_mounted(&image, SCRIPT, &["staging", paths[0], paths[1], paths[2]]);
    image::copy(&frozen, &emptied).unwrap();
    empty_journal(&emptied);
    let complaint = xfsprogs.repair_check(&emptied).unwrap_err().to_string();
    assert!(complaint.contains("leftover CoW extent"), "{complaint}");

    let target = ShrinkTarget::Bytes(200 * MIB);
    let options = ShrinkOptions { target, keep_inode_numbers: false };
    let plan = maintain::shrinkage(&Volume::open(device(&emptied)).unwrap(), options).unwrap();
    assert!(plan.obstacles.is_empty() && plan.groups < 8, "{plan:?}");
    for (volume, what) in [(&frozen, "to be replayed"), (&emptied, "with an empty journal")] {
        let done = shrink(volume, target).unwrap();
        assert_eq!(done.groups, plan.groups, "{what}");
        judged::sound(volume, what);
        same(&image, volume);
    }
}
