//! Contents of files and the journal moved by a shrink, compared with a copy of the volume before.

use crate::shrink::{MIB, resize, run_mounted, same, shrink};
use std::path::Path;
use std::process::Command;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};
use undercroft_testkit::xfs::judged;
use undercroft_xfs::maintain::ShrinkTarget;

/// Makes everything that can move, behind a file that is in front of it and goes then. All inodes
/// are in the first group.
const SCRIPT: &str = r#"
for i in $(seq 300); do : > gone-$i; done
for i in $(seq 20); do : > f-$i; : > copy-$i; done
: > ballast
rm gone-*
fallocate -l "$1" ballast
for i in $(seq 20); do head -c $((i * 70000)) /dev/urandom > f-$i; done
if cp --reflink=always f-20 copy-20 2> /dev/null; then
    for i in $(seq 15 19); do cp --reflink=always f-$i copy-$i; done
    cp --reflink=always f-20 copy-1
    head -c 20000 /dev/urandom | dd of=copy-1 bs=4096 seek=30 conv=notrunc status=none
fi
: > unwritten
fallocate -l 3M unwritten
head -c 30000 /dev/urandom | dd of=unwritten bs=4096 seek=40 conv=notrunc status=none
: > pieces
for i in $(seq 0 2 900); do
    head -c 4096 /dev/urandom | dd of=pieces bs=4096 seek=$i conv=notrunc status=none
    test $((i % 100)) != 0 || sync -d pieces
done
setfattr -n user.big -v "$(head -c 30000 /dev/zero | tr '\0' x)" f-1
for i in $(seq 150); do setfattr -n user.attribute-$i -v "value of number $i" f-2; done
ln -s "$(head -c 900 /dev/zero | tr '\0' s)" symlink
for i in $(seq 1200); do echo name-with-a-long-tail-of-characters-$i; done | xargs -n 1 ln f-3
sync
rm ballast
"#;

fn spread(image: &Path, size: u64, ballast: &str, arguments: &[&str]) {
    Xfsprogs::newest().unwrap().mkfs(image, size, arguments).unwrap();
    run_mounted(image, SCRIPT, &["spread", ballast]);
}

/// Two files that lie in turns in the same blocks, in a directory that goes: in pieces that become one
/// when they move, so that their mapping trees lose blocks that were to move as well.
const TURNS: &str = "for d in $(seq 8); do mkdir d$d; : > d$d/a; : > d$d/b; done; \
                     for i in $(seq 0 299); do for d in 5 6 7; do for f in a b; do \
                     fallocate -o $((i * 4096)) -l 4096 d$d/$f; done; done; done; sync";

/// Number of shared extents that the kernel sees in the copies of files.
fn shared(image: &Path) -> usize {
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    let mut list = Command::new("bash");
    list.args(["-c", "filefrag -v copy-* | grep -c shared"]).current_dir(mount.path());
    let count = String::from_utf8(list.output().unwrap().stdout).unwrap();
    mount.unmount().unwrap();
    count.trim().parse().unwrap()
}

#[test]
fn contents_move_into_what_stays() {
    if !kernel::available_or_report() {
        return;
    }
    let log = ["-d", "agcount=8", "-l", "agnum=0"];
    let small = ["-b", "size=1024", "-d", "agcount=8", "-l", "agnum=0", "-n", "size=4096,parent=0"];
    let alone = ["-d", "agcount=8", "-l", "agnum=0", "-m", "reflink=0", "-n", "size=16384"];
    let cases: [(&str, u64, &[&str]); 5] = [
        ("a journal in the first group", 200, &log),
        ("1 KiB blocks, directory blocks of 4 KiB", 200, &small),
        ("no shared blocks, directory blocks of 16 KiB", 200, &alone),
        ("a journal that moves", 256, &["-d", "agcount=4"]),
        ("a journal that moves, and trees behind it", 266, &["-d", "agcount=4"]),
    ];
    for (name, to, arguments) in cases {
        let directory = tempfile::tempdir().unwrap();
        let (ours, before) = (directory.path().join("ours"), directory.path().join("before"));
        // As much as makes files lie behind the new end.
        let ballast = if to > 200 { "380M" } else { "330M" };
        spread(&ours, 512 * MIB, ballast, arguments);
        image::copy(&ours, &before).unwrap();
        let links = if name.starts_with("no shared") { 0 } else { shared(&before) };
        let done = shrink(&ours, ShrinkTarget::Bytes(to * MIB)).unwrap();
        assert!(done.data.blocks > 1000 && done.metadata.blocks > 0, "{name}: {done:?}");
        assert_eq!(done.journal > 0, name.starts_with("a journal that moves"), "{done:?}");
        assert_eq!(ours.metadata().unwrap().len(), to * MIB, "{name}: {done:?}");
        judged::sound(&ours, name);
        same(&before, &ours);
        if links > 0 {
            assert!(shared(&ours) >= links, "{name}");
        }
        judged::sound(&ours, &format!("{name}, after mounts"));
        resize(&ours, 512 * MIB);
        let mount = LoopMount::new(&ours, Access::ReadWrite, &[]).unwrap();
        let grown = Command::new("xfs_growfs").arg("-d").arg(mount.path()).output().unwrap();
        assert!(grown.status.success(), "{name}: {}", String::from_utf8_lossy(&grown.stderr));
        mount.unmount().unwrap();
        judged::sound(&ours, &format!("{name}, grown again"));
    }
}

#[test]
fn mapping_trees_that_shrink_while_they_move() {
    if !kernel::available_or_report() {
        return;
    }
    for rmapbt in ["rmapbt=1", "rmapbt=0"] {
        let directory = tempfile::tempdir().unwrap();
        let (ours, before) = (directory.path().join("ours"), directory.path().join("before"));
        let arguments = ["-d", "agcount=8", "-l", "agnum=0", "-n", "parent=0", "-m", rmapbt];
        Xfsprogs::newest().unwrap().mkfs(&ours, 512 * MIB, &arguments).unwrap();
        run_mounted(&ours, TURNS, &["turns"]);
        image::copy(&ours, &before).unwrap();
        let done = shrink(&ours, ShrinkTarget::Bytes(130 * MIB)).unwrap();
        assert!(done.metadata.blocks > 6, "{rmapbt}: {done:?}");
        judged::sound(&ours, rmapbt);
        same(&before, &ours);
    }
}
