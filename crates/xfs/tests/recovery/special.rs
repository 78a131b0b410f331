//! States of a journal that plain load seldom makes, and those on which Linux itself fails (journal
//! reference, section 9).

use crate::judged::judge;
use crate::load::{self, End, shut_down};
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::log::recovery::recover;

/// Replays the volume in place; it must be sound then.
fn replay(image: &Path) {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false).unwrap());
    assert!(recover(&device, &mut |_| {}).unwrap().is_some(), "the volume was not dirty");
    let report = check(device, &CheckOptions::default(), &mut |finding| panic!("{finding}"));
    assert!(report.unwrap().is_clean());
    Xfsprogs::newest().unwrap().repair_check(image).unwrap();
}

#[test]
fn journals_that_went_around() {
    if !kernel::available_or_report("xfs::recovery::special::journals_that_went_around") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("image");
    let format = ["-d", "agcount=2", "-l", "size=10m"];
    Xfsprogs::newest().unwrap().mkfs(&image, 1 << 30, &format).unwrap();
    let mut around = 0;
    for seed in 0..40 {
        let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
        let end = if seed % 2 == 0 { End::Flushed } else { End::Cut };
        load::run(mount.path(), Duration::from_millis(700), 9000 + seed, end);
        mount.unmount().unwrap();
        let report = judge(&image).unwrap().unwrap();
        // From the end of the journal to its start.
        around += u32::from(report.tail.block() > report.head.block());
        if around == 2 {
            return;
        }
    }
    panic!("{around} journals of 40 went around");
}

#[test]
fn a_record_size_that_changed_loses_nothing() {
    if !kernel::available_or_report("xfs::recovery::special::a_record_size_that_changed") {
        return;
    }
    for sizes in [["logbsize=32k", "logbsize=256k"], ["logbsize=256k", "logbsize=32k"]] {
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        Xfsprogs::newest().unwrap().mkfs(&image, 512 << 20, &[]).unwrap();
        for (number, size) in sizes.iter().enumerate() {
            let mount = LoopMount::new(&image, Access::ReadWrite, &[size]).unwrap();
            for name in 0..20 {
                let path = mount.join(format!("{number}-{name}"));
                fs::write(&path, format!("{number} {name}")).unwrap();
                File::open(&path).unwrap().sync_all().unwrap();
            }
            shut_down(mount.path(), End::Cut);
            mount.unmount().unwrap();
        }
        replay(&image);
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        for number in 0..2 {
            for name in 0..20 {
                let content = fs::read_to_string(mount.join(format!("{number}-{name}")));
                assert_eq!(content.unwrap(), format!("{number} {name}"), "{sizes:?}");
            }
        }
        mount.unmount().unwrap();
    }
}
