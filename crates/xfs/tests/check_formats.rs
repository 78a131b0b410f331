//! Volumes of every format, filled and aged by the kernel or made by `mkfs.xfs`, are clean by our
//! check as they are by the newest `xfs_repair -n`.

mod common;

use common::{check_image, describe};
use std::thread;
use undercroft_judges::matrix::{FORMATS, Format};
use undercroft_judges::{Xfsprogs, kernel};

/// Makes a filled volume and has it judged by both sides; says what they disagree about.
fn judge(format: &Format) -> Result<(), String> {
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("image");
    format.make_filled(&image).map_err(|error| error.to_string())?;
    let theirs = Xfsprogs::newest().unwrap().repair_check(&image);
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
