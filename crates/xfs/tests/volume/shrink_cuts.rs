//! Crashes in the middle of a shrink, at each write of it.

use crate::shrink::{MIB, run_mounted, shrink};
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_block::testing::recorder::Unflushed;
use undercroft_judges::{Xfsprogs, kernel, rounds};
use undercroft_testkit::disk::in_memory;
use undercroft_testkit::xfs::journal::crash::Cut;
use undercroft_testkit::xfs::volume::shrink_judge::Judge;
use undercroft_xfs::Volume;
use undercroft_xfs::maintain::ShrinkTarget;

/// Every how many cuts the kernel judges one, and every how many the shrink goes on, in a check.
const EVERY: [u32; 2] = [20, 20];

/// Files of the first group behind the new end.
const FILES: &str = "for i in $(seq 12); do : > f-$i; done; : > b; fallocate -l 80M b; \
                     for i in $(seq 12); do head -c $((i * 9000)) /dev/urandom > f-$i; done; \
                     cp --reflink=always f-12 f-1; sync; rm b";

/// Inodes of all kinds in all groups.
const INODES: &str = "for d in $(seq 12); do mkdir -p d$d/deeper; \
                      for i in $(seq $((d * 2))); do echo $d $i > d$d/file-$i; done; \
                      ln -s $(head -c $((d * 70)) /dev/zero | tr '\\0' s) d$d/link; \
                      ln d$d/file-1 other-$d; mkfifo d$d/deeper/fifo; done; \
                      for d in $(seq 12); do ln d5/file-2 d$d/deeper/same; done; \
                      for i in $(seq 150); do echo > d6/a-name-with-a-long-tail-$i; done; \
                      setfattr -n user.big -v $(head -c 9000 /dev/zero | tr '\\0' x) d4/file-3; \
                      cp --reflink=always d7/file-3 d8/copy; sync";

/// For a directory in the third group of six: files behind a file that goes. Those behind the new end
/// have more blocks than that left in front of it.
const FULL: &str = "fallocate -l 5M front; \
                    for i in $(seq 75); do head -c 160000 /dev/urandom > f-$i; done; \
                    sync; rm front; sync";

/// For one in the second group: a space that the plan finds, and one as long as the journal, which comes
/// to lie behind it.
const IN_FRONT: &str = "fallocate -l 12M gone-longer; fallocate -l 1M between; \
                        fallocate -l $((2560 * 4096)) gone; sync";

/// A format, by arguments of `mkfs.xfs`.
type Format = &'static [&'static str];

/// One whose journal lies in what goes.
const POINTERS: Format = &["-n", "parent=1"];

/// Two whose journal lies across the new end, one without reverse mappings.
const ACROSS: Format = &["-n", "parent=1", "-l", "agnum=2"];
const ACROSS_UNMAPPED: Format = &["-n", "parent=0", "-m", "rmapbt=0", "-l", "agnum=2"];

/// One without reverse mappings, whose journal does not move.
const SCANNED: Format = &["-n", "parent=0", "-m", "rmapbt=0", "-l", "agnum=0"];

/// One whose groups set nothing aside for their trees.
const BARE: Format =
    &["-n", "parent=0", "-m", "rmapbt=0,reflink=0,finobt=0", "-i", "sparse=0", "-l", "agnum=0"];

/// Runs a script in a directory of the group of this number, from 1, of six.
fn in_group(number: u32, script: &str) -> String {
    format!(
        "for d in $(seq 6); do mkdir d$d; done; \
         cd d$(stat -c '%i %n' d* | sort -n | sed -n 's/.* d//p' | sed -n {number}p); {script}"
    )
}

/// A volume by the kernel, in which a script was run.
fn volume(size: u64, script: &str, format: Format) -> Arc<dyn BlockDevice> {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let arguments = [&["-d", "agcount=6"], format].concat();
    Xfsprogs::newest().unwrap().mkfs(&image, size, &arguments).unwrap();
    run_mounted(&image, script, &["cuts"]);
    in_memory(&image)
}

#[test]
fn a_crash_while_shrinking() {
    if !kernel::available_or_report() {
        return;
    }
    for (format, seen) in [(POINTERS, 50), (ACROSS, 15), (ACROSS_UNMAPPED, 15)] {
        let judge = cut_everywhere(volume(120 * MIB, FILES, format), 50 * MIB, EVERY);
        // Of the journal, and of the number of groups.
        assert!(judge.guarded > 6 && judge.seen > seen, "{} and {}", judge.guarded, judge.seen);
    }
}

#[test]
fn a_crash_while_inodes_get_new_numbers() {
    if !kernel::available_or_report() {
        return;
    }
    for (format, guarded) in [(POINTERS, 6), (SCANNED, 3)] {
        let judge = cut_everywhere(volume(120 * MIB, INODES, format), 50 * MIB, EVERY);
        assert!(
            judge.guarded > guarded && judge.seen > 100,
            "{} and {}",
            judge.guarded,
            judge.seen
        );
    }
}

#[test]
fn a_crash_when_the_last_group_is_full() {
    if !kernel::available_or_report() {
        return;
    }
    let judge = cut_everywhere(volume(120 * MIB, &in_group(3, FULL), BARE), 50 * MIB, [20, 3]);
    assert!(judge.seen > 10, "{}", judge.seen);
}

#[test]
fn a_crash_while_the_journal_moves_beside_itself() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    let xfsprogs = Xfsprogs::newest().unwrap();
    xfsprogs.mkfs(&image, 300 * MIB, &["-d", "agcount=6", "-l", "agnum=3,size=2560b"]).unwrap();
    run_mounted(&image, &in_group(2, IN_FRONT), &["beside"]);
    shrink(&image, ShrinkTarget::Bytes(150 * MIB)).unwrap();
    run_mounted(&image, "rm d*/gone*", &["beside"]);
    let log = |device: &Arc<dyn BlockDevice>| {
        let volume = Volume::open(Arc::clone(device)).unwrap();
        volume.geometry().split_block(volume.geometry().log_start)
    };
    let device = in_memory(&image);
    let (ag, before) = log(&device);
    let to = u64::from(ag.0) * 50 * MIB + u64::from(before.0 + 1280) * 4096;
    let judge = cut_everywhere(Arc::clone(&device), to, EVERY);
    let after = log(&device);
    assert_eq!((after.0, after.1.0 + 2560), (ag, before.0));
    assert!(judge.guarded > 6 && judge.seen > 20, "{} and {}", judge.guarded, judge.seen);
}

/// Cuts a shrink wherever a crash leaves another disk than before: in one of four ways in a check, in all
/// of them in a soak and where the volume is guarded.
fn cut_everywhere(device: Arc<dyn BlockDevice>, to: u64, every: [u32; 2]) -> Judge {
    let every = every.map(|every| rounds(every, 1));
    let (mut judge, mut recording) = Judge::record(device, to, every);
    let mut turn = 0;
    while recording.step().is_some() {
        if !recording.has_changed() {
            continue;
        }
        turn += 1;
        let position = recording.position() as u64;
        let torn = Unflushed::TornInUnits { seed: position, sectors: 8 };
        let by_sectors = Unflushed::Torn { seed: position };
        let mut ways = [Unflushed::Dropped, Unflushed::Kept, torn, by_sectors];
        ways.rotate_left(turn % 4);
        for unflushed in ways {
            let what = format!("event {position}, {unflushed:?}");
            let cut = Cut { disk: recording.disk(unflushed), durable: 0, what };
            let guarded = judge.guarded;
            judge.look(&cut, !matches!(unflushed, Unflushed::Torn { .. }));
            if judge.guarded == guarded && rounds(true, false) {
                break;
            }
        }
    }
    judge
}
