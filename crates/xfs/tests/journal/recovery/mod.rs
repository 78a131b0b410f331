//! Volumes that the kernel left dirty: our replay against the kernel's, judged by the newest
//! `xfs_repair -n`.

mod again;
mod cut_off;
mod links;
mod special;

use cut_off::CutOff;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{Error, LoopMount, Xfsprogs, kernel, rounds};
use undercroft_testkit::xfs::recovery::judged::{Disagreement, judge};
use undercroft_testkit::xfs::recovery::load::{self, End};
use undercroft_xfs::recovery::recover;

/// Name, `mkfs.xfs` and mount options, ends of the sessions.
type Case = (&'static str, &'static [&'static str], &'static [&'static str], &'static [End]);

const CASES: [Case; 10] = [
    ("defaults", &[], &[], &[End::Flushed]),
    ("defaults, cut", &[], &[], &[End::Cut, End::Cut]),
    ("no sharing", &["-m", "reflink=0"], &[], &[End::Flushed]),
    ("no sharing, no owners", &["-m", "reflink=0,rmapbt=0"], &[], &[End::Cut]),
    ("parents", &["-n", "parent=1", "-i", "exchange=1"], &[], &[End::Cut, End::Flushed]),
    ("records of 256 KiB", &[], &["logbsize=256k"], &[End::Cut]),
    ("three sessions", &[], &["logbsize=64k"], &[End::Flushed, End::Cut, End::Cut]),
    ("stripes", &["-l", "su=32k"], &[], &[End::Cut]),
    ("sectors of 4 KiB", &["-s", "size=4096"], &[], &[End::Cut]),
    ("small blocks", &["-b", "size=1024", "-n", "size=4096"], &[], &[End::Cut]),
];

/// Leaves the volume `image` as the last session of the case ends. An error, if the kernel cannot
/// mount the volume that it left itself in the session before.
fn leave_dirty(&(_, mkfs, options, ends): &Case, image: &Path, seed: u64) -> Result<(), Error> {
    Xfsprogs::newest().unwrap().mkfs(image, 1 << 30, mkfs).unwrap();
    for (round, end) in (0..).zip(ends) {
        let mount = match LoopMount::new(image, Access::ReadWrite, options) {
            Err(error) if round > 0 => return Err(error),
            mount => mount.unwrap(),
        };
        load::run(mount.path(), 5_000, seed * 8 + round, *end);
        mount.unmount().unwrap();
    }
    Ok(())
}

fn under_load(case: &Case, seed: u64) -> Result<(), String> {
    // Linux 6.18 refuses its own volume once in some hundred sessions: it finds a block of zeroes
    // when it frees an unlinked inode. There is nothing to compare with then.
    const ATTEMPTS: u64 = 4;
    let mut refused = Vec::new();
    for attempt in 0..ATTEMPTS {
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        if let Err(error) = leave_dirty(case, &image, seed + 100 * attempt) {
            refused.push(error.to_string());
            continue;
        }
        match judge(&image) {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => return Err("the volume was not dirty".into()),
            Err(Disagreement::KernelFails(why)) => refused.push(why),
            Err(Disagreement::OursIsWrong(what)) => return Err(what),
        }
    }
    Err(format!("the kernel mounted none of its own volumes: {refused:#?}"))
}

#[test]
fn volumes_under_load_are_replayed_as_the_kernel_does() {
    if !kernel::available_or_report() {
        return;
    }
    let failed = (1..).zip(&CASES).filter_map(|(seed, case)| {
        under_load(case, seed).err().map(|what| format!("{}: {what}", case.0))
    });
    let failed: Vec<_> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A volume on which this was cut off.
fn interrupted(image: &Path, work: CutOff, delay: u64) {
    let format = ["-n", "parent=1", "-i", "exchange=1"];
    Xfsprogs::newest().unwrap().mkfs(image, 1 << 30, &format).unwrap();
    let mount = LoopMount::new(image, Access::ReadWrite, &[]).unwrap();
    cut_off::cut_off(mount.path(), work, Duration::from_millis(delay));
    mount.unmount().unwrap();
}

/// Cuts these kinds of work off, each until something of it is unfinished.
fn cut_off(kinds: &[CutOff]) {
    let mut failed = Vec::new();
    for &work in kinds {
        let mut finished = 0;
        // The work must not be done before, so a machine may need many attempts.
        let delays = [50, 110, 20, 80, 35, 150, 200, 300].into_iter().cycle().take(40);
        for (number, delay) in delays.enumerate() {
            let scratch = tempfile::tempdir().unwrap();
            let image = scratch.path().join("image");
            interrupted(&image, work, delay);
            match judge(&image) {
                Ok(report) => finished += report.map_or(0, |report| report.intents),
                // Nothing to compare with; another attempt has.
                Err(Disagreement::KernelFails(_)) => {}
                Err(what) => failed.push(format!("{work:?} after {delay} ms: {what}")),
            }
            // Intents about names are done too soon to be met often.
            let enough = number + 1 >= rounds(2, 8);
            if enough && (finished > 0 || work == CutOff::Names) {
                break;
            }
        }
        if finished == 0 && work != CutOff::Names {
            failed.push(format!("{work:?}: no intent was unfinished in any of the volumes"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn intents_of_the_kernel_are_done() {
    if kernel::available_or_report() {
        cut_off(&[CutOff::Truncate, CutOff::Clone, CutOff::Names]);
    }
}

#[test]
fn exchanges_that_were_cut_off_are_finished() {
    if kernel::available_or_report() {
        cut_off(&[CutOff::Exchange, CutOff::ExchangeWritten]);
    }
}

/// The kernel's own replay loses what the shorter file got behind its old end, before it sets the
/// new one. Ours is judged by the contents: both files are as before, or exchanged.
#[test]
fn an_exchange_of_different_lengths_is_there_whole_or_not_at_all() {
    if !kernel::available_or_report() {
        return;
    }
    let mut finished = 0;
    for delay in [40, 60, 80, 110, 150, 200, 300].into_iter().cycle().take(40) {
        let scratch = tempfile::tempdir().unwrap();
        let image = scratch.path().join("image");
        interrupted(&image, CutOff::ExchangeLengths, delay);
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
        let report = recover(&device, &mut |_| {}).unwrap().expect("it was cut off");
        Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
        let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
        let [a, b] = ["a", "b"].map(|name| std::fs::read(mount.join(name)).unwrap());
        mount.unmount().unwrap();
        let [before, other] = cut_off::contents();
        let is = |first: &[u8], second: &[u8]| a == first && b == second;
        assert!(is(&before, &other) || is(&other, &before), "after {delay} ms: {report:?}");
        finished += u32::from(report.intents > 0);
        if finished == rounds(1, 3) {
            return;
        }
    }
    panic!("{finished} exchanges of 40 were unfinished");
}
