//! The same operations by the kernel, on a mounted volume.

use super::history::{name, same};
use super::operation::{Operation, pattern};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::Command;
use undercroft_judges::LoopMount;

fn open(mount: &LoopMount, file: usize) -> File {
    OpenOptions::new().read(true).write(true).open(mount.join(name(file))).unwrap()
}

/// Does an operation on the mounted files.
pub(crate) fn perform(mount: &LoopMount, operation: &Operation) {
    let file = open(mount, operation.file());
    let space = |flags: FallocateFlags, (offset, len): (u64, u64), keep: bool| {
        let keep = if keep { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
        fallocate(&file, flags | keep, offset, len).unwrap();
    };
    match *operation {
        Operation::Write { offset, len, seed, .. } => {
            file.write_all_at(&pattern(seed, len), offset).unwrap();
        }
        Operation::Truncate { size, .. } => file.set_len(size).unwrap(),
        Operation::Preallocate { range, keep, .. } => space(FallocateFlags::empty(), range, keep),
        Operation::Punch { range, .. } => space(FallocateFlags::PUNCH_HOLE, range, true),
        Operation::Zero { range, keep, .. } => space(FallocateFlags::ZERO_RANGE, range, keep),
        Operation::Collapse { range, .. } => space(FallocateFlags::COLLAPSE_RANGE, range, false),
        Operation::Insert { range, .. } => space(FallocateFlags::INSERT_RANGE, range, false),
        Operation::Clone { from, to, source, target, len } => {
            share(mount, "reflink", (from, to), (source, target, len));
        }
        Operation::Dedupe { from, to, source, target, len } => {
            share(mount, "dedupe", (from, to), (source, target, len));
        }
    }
}

fn share(
    mount: &LoopMount,
    what: &str,
    (from, to): (usize, usize),
    (source, target, len): (u64, u64, u64),
) {
    if len == 0 {
        // To the kernel: all of the file.
        return;
    }
    let source_path = mount.join(name(from));
    let command = format!("{what} {} {source} {target} {len}", source_path.display());
    let run = Command::new("xfs_io").args(["-c", &command]).arg(mount.join(name(to))).output();
    let run = run.unwrap();
    let complaint = String::from_utf8_lossy(&run.stderr);
    // Contents that differ are an answer, not a failure.
    let differs = complaint.contains("Extents did not match");
    assert!(run.status.success() && (complaint.is_empty() || differs), "{command}: {complaint}");
}

/// Fails unless the mounted files hold these bytes.
pub(crate) fn compare(mount: &LoopMount, files: &[Vec<u8>]) {
    for (file, expected) in files.iter().enumerate() {
        let found = std::fs::read(mount.join(name(file))).unwrap();
        same(&found, expected, &format!("read by the kernel: file {file}"));
    }
}
