//! Volumes of every format, filled and aged by the kernel or made by `mkfs.xfs`, are clean by our
//! check as they are by the newest `xfs_repair -n`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{check_image, describe};
use std::thread;
use undercroft_judges::matrix::{FORMATS, Format};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, image, kernel};
use undercroft_xfs::recovery::LogState;

/// Makes a filled volume and has it judged by both sides; returns their disagreements.
fn judge(format: &Format) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let image = scratch.path().join("image");
    format.make_filled(&image).map_err(|error| error.to_string())?;
    let newest = Xfsprogs::newest().map_err(|error| error.to_string())?;
    let theirs = newest.repair_check(&image);
    let (report, findings) = check_image(&image).map_err(|error| error.to_string())?;
    if report.is_clean() == theirs.is_ok() {
        return Ok(());
    }
    Err(format!("repair says {theirs:?}, we say {report:?}:\n{}", describe(&findings)))
}

#[test]
fn filled_volumes_are_clean_when_repair_says_so() {
    if !kernel::available_or_report("xfs::check::filled_volumes_are_clean_when_repair_says_so") {
        return;
    }
    let failed: Vec<String> = thread::scope(|scope| {
        let parts = FORMATS.chunks(FORMATS.len().div_ceil(3));
        let judge_part = |part: &[Format]| -> Vec<String> {
            let result = |format: &Format| Some((format.name, judge(format).err()?));
            let failed = part.iter().filter_map(result);
            failed.map(|(name, what)| format!("{name}: {what}")).collect()
        };
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || judge_part(part))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_volume_in_use_has_a_dirty_journal() {
    if !kernel::available_or_report("xfs::check::a_volume_in_use_has_a_dirty_journal") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let (image, copy) = (scratch.path().join("image"), scratch.path().join("copy"));
    FORMATS[0].make(&image, &[]).unwrap();
    let (report, _) = check_image(&image).unwrap();
    assert!(report.is_clean() && report.log == LogState::Clean, "{report:?}");
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    for number in 0..100 {
        std::fs::write(mount.join(format!("file-{number}")), b"content").unwrap();
    }
    std::fs::File::open(mount.path()).unwrap().sync_all().unwrap();
    image::copy(&image, &copy).unwrap();
    let (report, findings) = check_image(&copy).unwrap();
    assert_eq!(report.log, LogState::Dirty);
    assert!(findings.iter().any(|finding| finding.structure == "log"), "{}", describe(&findings));
    mount.unmount().unwrap();
    let (report, findings) = check_image(&image).unwrap();
    assert!(report.is_clean() && report.log == LogState::Clean, "{}", describe(&findings));
    assert_eq!(report.inodes, 103);
}
