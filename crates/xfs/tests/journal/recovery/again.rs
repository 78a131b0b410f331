//! Recovery that is itself cut off, at any of its writes: begun again, it must end the same.

use super::cut_off::{self, CutOff};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use undercroft_block::testing::recorder::{Recorder, Unflushed};
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel, rounds};
use undercroft_testkit::disk;
use undercroft_testkit::xfs::journal::tree::tree;
use undercroft_testkit::xfs::recovery::load::{self, End};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, Severity, check};
use undercroft_xfs::recovery::RecoveryReport;
use undercroft_xfs::recovery::recover;

/// Recovers the volume in `image`, cuts that off at many points, and recovers again: by us, and
/// now and then by the kernel.
fn cut_recovery(image: &Path) -> RecoveryReport {
    let recorder = Arc::new(Recorder::with_contents(disk::in_memory(image)).unwrap());
    let recorded: Arc<dyn BlockDevice> = Arc::clone(&recorder) as _;
    let report = recover(&recorded, &mut |_| {}).unwrap().expect("the volume is dirty");
    let expected = tree(&Volume::open(recorded).unwrap()).unwrap();
    let mut recording = recorder.recording().unwrap();
    let step = (recording.events().len() / rounds(20, 60)).max(1);
    for number in 0.. {
        let passed = (0..step).filter(|_| recording.step().is_some()).count();
        if passed == 0 {
            break;
        }
        let seed = recording.position() as u64;
        let unflushed = [Unflushed::Torn { seed }, Unflushed::Kept, Unflushed::Dropped][number % 3];
        let what = format!("event {seed} of {}, {unflushed:?}", recording.events().len());
        let disk = recording.disk(unflushed);
        // A kernel gives up at a block of which a part is old, although the journal could mend it.
        if number % 6 == 4 {
            let left = image.with_extension("left");
            disk::save(disk.as_ref(), &left);
            let mount = LoopMount::new(&left, Access::ReadWrite, &["noatime"]).unwrap();
            mount.unmount().unwrap();
            let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&left, true).unwrap());
            let found = tree(&Volume::open(device).unwrap()).unwrap();
            assert!(found == expected, "{what}: the kernel found another tree");
        }
        recover(&disk, &mut |_| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = tree(&Volume::open(Arc::clone(&disk)).unwrap()).unwrap();
        assert!(found == expected, "{what}: another tree");
        check(disk, &CheckOptions::default(), &mut |finding| {
            // Left so by the kernel that was cut off.
            assert!(finding.severity == Severity::Warning, "{what}: {finding}");
        })
        .unwrap();
    }
    report
}

fn volume(directory: &Path, work: impl FnOnce(&Path)) -> std::path::PathBuf {
    let image = directory.join("image");
    Xfsprogs::newest().unwrap().mkfs(&image, 320 << 20, &["-i", "exchange=1"]).unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    work(mount.path());
    mount.unmount().unwrap();
    image
}

#[test]
fn recovery_of_changes_can_be_cut_off_anywhere() {
    if !kernel::available_or_report() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let image = volume(scratch.path(), |root| {
        load::run(root, 4_000, 77, End::Flushed);
    });
    let report = cut_recovery(&image);
    assert!(report.transactions > 0 && report.unlinked > 0, "{report:?}");
}

#[test]
fn recovery_of_intents_can_be_cut_off_anywhere() {
    if !kernel::available_or_report() {
        return;
    }
    // Whether an intent is unfinished when the volume goes down is a matter of luck.
    let delays = [80, 50, 110, 35, 150, 20, 200, 300].into_iter().cycle().take(32);
    let unfinished = delays.map(Duration::from_millis).find(|delay| {
        let scratch = tempfile::tempdir().unwrap();
        let image = volume(scratch.path(), |root| {
            cut_off::cut_off(root, CutOff::Truncate, *delay);
        });
        cut_recovery(&image).intents > 0
    });
    assert!(unfinished.is_some(), "no intent was unfinished in any of the volumes");
}
