//! Each damage of the corpus: one field of one structure, put right, no file lost that xfs_repair keeps.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::damage::{CORPUS, volume};
use undercroft_judges::{Xfsprogs, kernel, rounds};
use undercroft_repair::Plan;

use crate::files::{self, Files};

fn open(image: &Path, read_only: bool) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, read_only).unwrap())
}

/// The name of an undo file beside an image, where there is none.
pub(crate) fn undo(image: &Path) -> Option<PathBuf> {
    let path = image.with_extension("undo");
    let _ = fs::remove_file(&path);
    Some(path)
}

/// What xfs_repair leaves of a copy; `None` if it gives up.
pub(crate) fn of_xfs_repair(image: &Path, copy: &Path, tools: &Xfsprogs) -> Option<Files> {
    fs::copy(image, copy).unwrap();
    let mut command = Command::new(tools.tool("xfs_repair").unwrap());
    let status = command.args(["-f", "-L"]).arg(copy).output().unwrap().status;
    status.success().then(|| files::of(open(copy, true)))
}

#[test]
fn every_damage_of_the_corpus_is_mended() {
    if !kernel::available_or_report() {
        return;
    }
    let (directory, pristine) = volume().unwrap();
    let tools = Xfsprogs::newest().unwrap();
    let before = files::of(open(&pristine, true));
    assert!(before.len() > 100);
    let plan = Plan::find(open(&pristine, false)).unwrap();
    assert!(plan.is_sound() && plan.actions.is_empty(), "{:?}", plan.actions);
    let (image, copy) = (directory.path().join("image"), directory.path().join("copy"));
    let mut failures = Vec::new();
    let only = std::env::var("UNDERCROFT_ONLY").ok();
    for damage in CORPUS.iter().step_by(rounds(6, 1)) {
        if only.as_ref().is_some_and(|only| !damage.name.contains(only.as_str())) {
            continue;
        }
        fs::copy(&pristine, &image).unwrap();
        damage.apply(&image).unwrap();
        let peer = of_xfs_repair(&image, &copy, &tools);
        let plan = match Plan::find(open(&image, false)) {
            Ok(plan) => plan,
            Err(error) => {
                failures.push(format!("{}: {error}", damage.name));
                continue;
            }
        };
        if let Err(error) = plan.commit(undo(&image).as_deref()) {
            failures.push(format!("{}: {error}", damage.name));
            continue;
        }
        if let Err(error) = tools.repair_check(&image) {
            failures.push(format!("{}: {:?}: {error}", damage.name, plan.actions));
            continue;
        }
        let after = files::of(open(&image, true));
        let (own, other) =
            (files::right(&before, &after), peer.map_or(0, |peer| files::right(&before, &peer)));
        if own < other {
            failures.push(format!(
                "{}: {own} files right, {other} by xfs_repair: {:?}",
                damage.name, plan.actions
            ));
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}
