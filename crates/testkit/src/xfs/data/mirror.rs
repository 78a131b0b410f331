//! The same operations by the kernel, on a mounted volume.

use super::history::{Mapped, name, same};
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
pub fn perform(mount: &LoopMount, operation: &Operation) {
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
pub fn compare(mount: &LoopMount, files: &[Vec<u8>]) {
    for (file, expected) in files.iter().enumerate() {
        let found = std::fs::read(mount.join(name(file))).unwrap();
        same(&found, expected, &format!("read by the kernel: file {file}"));
    }
}

/// Where the kernel says that a file is.
pub fn map(mount: &LoopMount, file: usize) -> Vec<Mapped> {
    const UNWRITTEN: u64 = 0x800;
    const SHARED: u64 = 0x2000;
    let mut command = Command::new("xfs_io");
    command.args(["-r", "-c", "fiemap -v"]).arg(mount.join(name(file)));
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let range = |text: &str| {
        let (first, last) = text.trim_matches(['[', ']', ':']).split_once("..").unwrap();
        (first.parse::<u64>().unwrap(), last.parse::<u64>().unwrap())
    };
    let mut map = Vec::new();
    // A heading of two lines; then number, range in the file, range on the device, length, flags.
    for line in text.lines().skip(2) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[2] == "hole" {
            continue;
        }
        let ((first, last), (sector, _)) = (range(words[1]), range(words[2]));
        let flags = u64::from_str_radix(words[4].trim_start_matches("0x"), 16).unwrap();
        map.push(Mapped {
            offset: first,
            sector,
            len: last + 1 - first,
            unwritten: flags & UNWRITTEN != 0,
            shared: flags & SHARED != 0,
        });
    }
    map
}
