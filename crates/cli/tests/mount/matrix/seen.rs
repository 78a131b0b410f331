//! What a program sees of a file, and what may differ.

use super::operations::Difference;
use super::{Case, MOMENTS, Sights};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a program sees of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    mode: u32,
    owner: (u32, u32),
    links: u64,
    size: u64,
    blocks: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    has_capability: bool,
}

impl Seen {
    pub(super) fn of(path: &Path) -> Self {
        let metadata = fs::symlink_metadata(path).unwrap();
        let mut value = [0; 64];
        Self {
            mode: metadata.mode(),
            owner: (metadata.uid(), metadata.gid()),
            links: metadata.nlink(),
            size: metadata.size(),
            blocks: metadata.blocks(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            has_capability: rustix::fs::getxattr(path, "security.capability", &mut value[..])
                .is_ok(),
        }
    }

    /// What must be the same on two volumes: times as far as they changed.
    fn compared_with(&self, before: &Self) -> String {
        let Self { mode, owner: (user, group), links, size, blocks, .. } = self;
        let mut text = format!(
            "mode {mode:o}, owner {user}:{group}, {links} links, {size} bytes, {blocks} blocks"
        );
        for (is_so, word) in [
            (self.modified != before.modified, ", modified"),
            (self.changed != before.changed, ", changed"),
            (self.has_capability, ", capability"),
        ] {
            text.push_str(if is_so { word } else { "" });
        }
        text
    }
}

/// Adds what differs between the two mounts, and from moment to moment.
pub(super) fn compare(
    index: usize,
    case: &Case,
    here: &Sights,
    there: &Sights,
    wrong: &mut Vec<String>,
) {
    let (results, name) = ((here.results[index], there.results[index]), case.name());
    if results.0 != results.1 {
        return wrong.push(format!("{name}: {:?}, the kernel's {:?}", results.0, results.1));
    }
    let difference = case.operation.difference;
    let first = usize::from(difference == Difference::LateTimes);
    let both = here.after.iter().zip(&there.after);
    for (moment, (ours, theirs)) in MOMENTS.iter().zip(both).skip(first) {
        let mut before = here.before[index];
        if difference == Difference::TimeOfChange {
            before.changed = ours[index].changed;
        }
        let ours = ours[index].compared_with(&before);
        let theirs = theirs[index].compared_with(&there.before[index]);
        if ours != theirs {
            wrong.push(format!("{name}, {moment}: {ours}; the kernel's: {theirs}"));
        }
    }
    let (earlier, moments) = (&here.after[first][index], &MOMENTS[first..]);
    for (moment, later) in moments.iter().zip(&here.after[first..]) {
        if *earlier != later[index] {
            let before = moments[0];
            wrong.push(format!("{name}, {moment}: {:?}, {before} {earlier:?}", later[index]));
        }
    }
}
