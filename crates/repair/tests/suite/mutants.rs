//! Changed metadata with right checksums: put right, with no panic and no file lost that xfs_repair keeps.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use undercroft_block::{BlockDevice, FileDevice, MemoryDevice, Sector, read_exact_at};
use undercroft_judges::damage::volume;
use undercroft_judges::{Xfsprogs, kernel, rounds};
use undercroft_repair::Plan;
use undercroft_testkit::xfs::mutation::Subject;

use crate::damages::{of_xfs_repair, undo};
use crate::files;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What xfs_repair complains of, but for fields of free inodes that nobody reads (CONTRIBUTING.md).
fn judge(tools: &Xfsprogs, image: &Path) -> Result<(), String> {
    let Err(error) = tools.repair_check(image) else { return Ok(()) };
    let text = error.to_string();
    let is_harmless = text.lines().skip(1).all(|line| line.contains("free inode"));
    if is_harmless { Ok(()) } else { Err(text) }
}

#[test]
fn mutants_are_mended() {
    if !kernel::available_or_report() {
        return;
    }
    let (directory, pristine) = volume().unwrap();
    let tools = Xfsprogs::newest().unwrap();
    let bytes = fs::read(&pristine).unwrap();
    let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(bytes.len() as u64));
    let before = files::of(Arc::new(FileDevice::open(&pristine, true).unwrap()));
    let seed = number("UNDERCROFT_SEED", 0x5eed);
    let mut subject = Subject::new(memory, &bytes, seed).unwrap();
    let (image, copy) = (directory.path().join("image"), directory.path().join("copy"));
    let mut failures = Vec::new();
    let (mut own_right, mut peer_right, mut refused) = (0, 0, 0);
    let most = number("UNDERCROFT_ROUNDS", rounds(12, 2000));
    let faults = number("UNDERCROFT_FAULTS", 10) as usize;
    for round in 0..most {
        let verdict = subject.round(faults, |subject| {
            let mut damaged = vec![0; bytes.len()];
            read_exact_at(subject.device().as_ref(), Sector(0), &mut damaged).unwrap();
            fs::write(&image, &damaged).unwrap();
            let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(&image, false).unwrap());
            let done = catch_unwind(AssertUnwindSafe(|| {
                let plan = Plan::find(device).map_err(|error| error.to_string())?;
                plan.commit(undo(&image).as_deref()).map_err(|error| format!("commit: {error}"))?;
                Ok::<_, String>(plan.actions)
            }));
            let peer = || {
                fs::write(&image, &damaged).unwrap();
                of_xfs_repair(&image, &copy, &tools)
            };
            let actions = match done {
                Ok(Ok(actions)) => actions,
                Ok(Err(error)) => {
                    let peer = peer().map_or(0, |peer| files::right(&before, &peer));
                    return Err(format!("{error} ({peer} by xfs_repair)"));
                }
                Err(_) => return Err("panic".to_owned()),
            };
            let judged = judge(&tools, &image).map_err(|text| format!("{text}: {actions:?}"));
            let after = files::of(Arc::new(FileDevice::open(&image, true).unwrap()));
            judged?;
            let peer = peer().map_or(0, |peer| files::right(&before, &peer));
            let own = files::right(&before, &after);
            if own < peer {
                let gone: Vec<_> = before
                    .iter()
                    .filter(|(path, file)| after.get(*path) != Some(file))
                    .map(|(path, _)| path)
                    .take(5)
                    .collect();
                return Err(format!("{own} right, {peer} by xfs_repair: {gone:?} {actions:?}"));
            }
            Ok((own, peer))
        });
        match verdict.unwrap() {
            Ok((own, peer)) => {
                own_right += own;
                peer_right += peer;
            }
            Err(error) => {
                refused += 1;
                let damage = subject.damage().join(", ");
                let short: String = error.chars().take(1500).collect();
                failures.push(format!("round {round} ({damage}): {short}"));
            }
        }
    }
    println!("{most} rounds, {refused} failed; right {own_right}, by xfs_repair {peer_right}");
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}
