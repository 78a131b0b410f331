//! Targets of symbolic links (docs/format/symlinks.md).

use super::checker::Checker;
use super::forks::Fork;
use super::subject::Subject;
use crate::format::{BufferKind, ForkFormat, SYMLINK_MAX, symlink_part};
use crate::inode::ForkKind;
use crate::units::FileBlock;

/// Checks the target: readable, as long as the size says, without zero bytes.
pub(super) fn check(checker: &Checker, subject: &Subject<'_>, fork: &Fork) {
    let (size, location) = (subject.core.size, subject.location());
    if size == 0 || size > SYMLINK_MAX as u64 {
        if subject.core.nlink > 0 {
            let what = format!("target of {size} bytes, must be 1 to {SYMLINK_MAX}");
            checker.error("symbolic link", location, what);
        }
        return;
    }
    let size = size as usize;
    let target = if subject.core.data_format == ForkFormat::Local {
        let bytes = subject.fork_bytes(checker, ForkKind::Data);
        bytes.get(..size).map(<[u8]>::to_vec)
    } else {
        remote(checker, fork, size)
    };
    if target.is_some_and(|target| target.contains(&0)) {
        checker.error("symbolic link", location, "the target contains a zero byte");
    }
}

fn remote(checker: &Checker, fork: &Fork, size: usize) -> Option<Vec<u8>> {
    let geometry = checker.geometry();
    let (mut target, mut next) = (Vec::with_capacity(size), FileBlock(0));
    for extent in &fork.extents {
        let location = fork.location(extent.offset);
        if extent.offset != next {
            let what = format!("the extent should be at block {next} of the target");
            checker.error("symbolic link", location, what);
            return None;
        }
        next = extent.end();
        if target.len() >= size || extent.len > 3 {
            let what = format!("{} blocks, more than {size} bytes need", extent.len);
            checker.error("symbolic link", location, what);
            return None;
        }
        let block = match fork.read(checker, BufferKind::Symlink, extent.offset, extent.len) {
            Ok(block) => block,
            Err(defect) => {
                checker.report_defect("symbolic link", location, defect);
                return None;
            }
        };
        match symlink_part(&block.bytes, geometry, target.len(), size) {
            Ok(part) => target.extend_from_slice(part),
            Err(what) => {
                checker.error("symbolic link", location, what);
                return None;
            }
        }
    }
    if target.len() < size {
        let what = format!("the target has {} bytes, the size is {size}", target.len());
        checker.error("symbolic link", fork.location(FileBlock(0)), what);
        return None;
    }
    Some(target)
}
