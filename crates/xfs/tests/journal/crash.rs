//! Cuts that the kernel replays.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::FileDevice;
use undercroft_block::testing::recorder::Unflushed;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel, rounds};
use undercroft_testkit::xfs::journal::crash::{Cut, History, cuts, formats, judge, make, options};
use undercroft_testkit::xfs::journal::tree::{Tree, tree};
use undercroft_xfs::Volume;
use undercroft_xfs::mkfs::MkfsOptions;
use undercroft_xfs::volume::LiveOptions;

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

/// What a history runs on, and how.
struct Case {
    options: MkfsOptions,
    live: LiveOptions,
    operations: u64,
    sync_one_in: u64,
    close: bool,
}

fn run(case: &Case, seed: u64) {
    let mut history = History::start(make(&case.options), &case.live, seed);
    history.run(case.operations, case.sync_one_in);
    let (recording, trees) = history.end(case.close);
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let mut judged = 0;
    // The kernel does not recover from blocks of metadata that were torn by sectors.
    let torn = |seed| Unflushed::TornInUnits { seed, sectors: 8 };
    cuts(recording, (20, seed), torn, |cut| {
        judge_by_kernel(&cut, &trees, &image);
        judged += 1;
    });
    assert!(judged > 5, "{judged} cuts");
}

/// Crashes with writes torn by sectors, which we replay: hundreds, and thousands in a soak.
#[test]
fn we_replay_a_crash_anywhere() {
    let mut judged = 0;
    for (index, options) in formats(20).into_iter().enumerate() {
        let seed = 20 + index as u64;
        let record_bytes = if index == 1 { 256 << 10 } else { 32 << 10 };
        let live = LiveOptions { record_bytes, ..LiveOptions::default() };
        let mut history = History::start(make(&options), &live, seed);
        history.run(150, 3);
        let (recording, trees) = history.end(index % 2 == 0);
        cuts(
            recording,
            (rounds(180, 450), seed),
            |seed| Unflushed::Torn { seed },
            |cut| {
                judge(&cut, &trees, judged % 10 == 0);
                judged += 1;
            },
        );
    }
    assert!(judged >= rounds(800, 2000), "{judged} cuts");
}

#[test]
fn a_kernel_replays_a_crash_anywhere() {
    if !kernel::available_or_report() {
        return;
    }
    for seed in 1..4 {
        let close = seed % 2 == 0;
        let (options, live) = (options(64 << 20, seed), LiveOptions::default());
        run(&Case { options, live, operations: 100, sync_one_in: 4, close }, seed);
    }
}

#[test]
fn a_kernel_replays_large_and_padded_records() {
    if !kernel::available_or_report() {
        return;
    }
    let large = LiveOptions { record_bytes: 256 << 10, ..LiveOptions::default() };
    let plain = options(64 << 20, 11);
    let case = Case { options: plain, live: large, operations: 60, sync_one_in: 10, close: false };
    run(&case, 11);
    let padded = MkfsOptions { log_stripe_unit: Some(32 << 10), ..options(128 << 20, 12) };
    let live = LiveOptions::default();
    run(&Case { options: padded, live, operations: 60, sync_one_in: 3, close: true }, 12);
}
