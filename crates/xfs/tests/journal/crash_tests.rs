//! Cuts that the kernel replays.

use crate::crash::{Cut, History, cuts, make};
use crate::tree::{Tree, tree};
use std::path::Path;
use std::sync::Arc;
use undercroft_block::FileDevice;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_xfs::Volume;
use undercroft_xfs::mkfs::MkfsOptions;
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

/// Has the kernel replay a cut, and the judges look at it.
fn judge_by_kernel(cut: &Cut, trees: &[Tree], image: &Path) {
    cut.save(image);
    let mount = LoopMount::new(image, Access::ReadWrite, &[])
        .unwrap_or_else(|error| panic!("{}: {error}", cut.what));
    mount.unmount().unwrap();
    let repair = Xfsprogs::newest().unwrap().repair_check(image);
    repair.unwrap_or_else(|error| panic!("{}: {error}", cut.what));
    let volume = Volume::open(Arc::new(FileDevice::open(image, true).unwrap())).unwrap();
    let found = tree(&volume).unwrap_or_else(|error| panic!("{}: {error}", cut.what));
    cut.judge_tree(&found, trees);
}

fn run(size: u64, log_size: Option<u64>, operations: u64, sync_one_in: u64, close: bool, seed: u64) {
    let options = MkfsOptions { log_size, ..MkfsOptions::new(size, Uuid::from_u128(seed.into())) };
    let mut history = History::start(make(&options), &LiveOptions::default(), seed);
    history.run(operations, sync_one_in);
    let (recording, trees) = history.end(close);
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let mut judged = 0;
    cuts(recording, 25, seed, |cut| {
        judge_by_kernel(&cut, &trees, &image);
        judged += 1;
    });
    eprintln!("{judged} cuts");
    assert!(judged > 5);
}

#[test]
fn a_kernel_replays_a_crash_anywhere() {
    if !kernel::available_or_report("journal::a_kernel_replays_a_crash_anywhere") {
        return;
    }
    for seed in 1..4 {
        run(64 << 20, None, 100, 4, seed % 2 == 0, seed);
    }
}
