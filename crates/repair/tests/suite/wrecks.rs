//! Larger damage: whole areas of zeroes. The figures of xfs_repair are those of docs/recover.md's kind.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_repair::Plan;

use crate::damages::{of_xfs_repair, undo};
use crate::files;

/// Directories with files, three levels deep.
fn populate(root: &Path) {
    for a in 0..6 {
        for b in 0..6 {
            let directory = root.join(format!("top{a}/middle{b}"));
            fs::create_dir_all(&directory).unwrap();
            for c in 0..30 {
                let name = format!("file{c}-{}", "n".repeat(c));
                let len = (a * 977 + b * 131 + c * 5003) % 30_000;
                fs::write(directory.join(name), vec![(a * b + c) as u8; len]).unwrap();
            }
            std::os::unix::fs::symlink("target/of/it", directory.join("link")).unwrap();
        }
    }
}

/// Entries below a directory; each can be looked at.
fn walk(directory: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        count += 1;
        if entry.file_type().unwrap().is_dir() {
            count += walk(&entry.path());
        } else {
            entry.metadata().unwrap();
        }
    }
    count
}

fn zero(image: &Path, start: u64, len: u64) {
    let file = fs::File::options().write(true).open(image).unwrap();
    file.write_all_at(&vec![0; len as usize], start).unwrap();
}

/// A name, the places and lengths of zeroes, and the share of files in percent that come back.
type Case = (&'static str, &'static [(u64, u64)], usize);

#[test]
fn wrecked_volumes_come_back_with_their_names() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let tools = Xfsprogs::newest().unwrap();
    let pristine = directory.path().join("pristine");
    tools.mkfs(&pristine, 512 << 20, &["-d", "agcount=4"]).unwrap();
    let mount = LoopMount::new(&pristine, Access::ReadWrite, &[]).unwrap();
    populate(mount.path());
    mount.unmount().unwrap();
    let before = files::of(Arc::new(FileDevice::open(&pristine, true).unwrap()));
    const GROUP: u64 = 128 << 20;
    let cases: &[Case] = &[
        ("half the inodes of the root's chunk", &[(16 << 12, 16 << 10)], 98),
        ("the chunk of the root", &[(16 << 12, 32 << 10)], 95),
        ("the first MiB", &[(0, 1 << 20)], 30),
        ("headers of group 1", &[(GROUP, 64 << 10)], 97),
        ("the superblock", &[(0, 512)], 100),
        ("headers of group 0", &[(512, 15 << 10)], 100),
        (
            "headers of all groups but the superblock",
            &[(512, 1536), (GROUP, 2048), (2 * GROUP, 2048), (3 * GROUP, 2048)],
            99,
        ),
    ];
    let (image, copy) = (directory.path().join("image"), directory.path().join("copy"));
    let mut failures = Vec::new();
    let only = std::env::var("UNDERCROFT_ONLY").ok();
    for (name, zeroes, percent) in cases {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        fs::copy(&pristine, &image).unwrap();
        zeroes.iter().for_each(|(start, len)| zero(&image, *start, *len));
        let peer = of_xfs_repair(&image, &copy, &tools);
        let peer = peer.map_or(0, |peer| files::right(&before, &peer));
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
        let done =
            Plan::find(device).and_then(|plan| plan.commit(undo(&image).as_deref()).map(|()| plan));
        let plan = match done {
            Ok(plan) => plan,
            Err(error) => {
                failures.push(format!("{name}: {error}; xfs_repair: {peer}"));
                continue;
            }
        };
        if let Err(error) = tools.repair_check(&image) {
            failures.push(format!("{name}: {error}"));
        }
        // The kernel mounts it, and can walk all of it and write.
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        let walked = walk(mount.path());
        fs::write(mount.path().join("new"), "after the repair").unwrap();
        mount.unmount().unwrap();
        if walked < before.len() * percent / 100 {
            failures.push(format!("{name}: the kernel sees {walked} of {}", before.len()));
        }
        let own =
            files::right(&before, &files::of(Arc::new(FileDevice::open(&image, true).unwrap())));
        println!("{name}: {own} of {} right, {peer} by xfs_repair", before.len());
        if own < peer || own * 100 < before.len() * percent {
            let actions = &plan.actions[..plan.actions.len().min(40)];
            failures.push(format!("{name}: {own} of {} right, {peer}: {actions:?}", before.len()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
