//! Reads everything that the reading commands read of an open volume: every name, inode, link,
//! attribute, mapping and byte, as far as damage lets them.

use crate::PatchedDevice;
use std::collections::HashSet;
use std::sync::Arc;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::InodeState;
use undercroft_xfs::ops;
use undercroft_xfs::ops::Position;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, OpenFile, Volume};

/// Most inodes that are visited; a sample has about a hundred.
const INODES: usize = 1000;
/// Most names of one directory that are looked up.
const LOOKUPS: usize = 8;
/// Most bytes that are read in all: damage can make every file as large as the volume.
const BYTES: u64 = 256 << 20;
/// Most bytes that are read at a time.
const CHUNK: usize = 1 << 20;
/// Most reads of one file.
const READS: usize = 1000;

/// Visits the whole tree below the root directory. Every step may read `step` bytes.
pub(crate) fn tree(volume: &Arc<Volume>, device: &PatchedDevice, step: u64) {
    let mut seen = HashSet::new();
    let mut waiting = vec![volume.geometry().root_inode];
    while let Some(number) = waiting.pop() {
        if seen.len() > INODES || device.read() > BYTES || !seen.insert(number) {
            continue;
        }
        device.allow(step);
        let Some(inode) = sound(volume.inode(number)) else { continue };
        inode_contents(volume, device, step, &inode.read(), &mut waiting);
        if inode.read().file_type() == FileType::Regular {
            device.allow(u64::MAX - device.read());
            sound(contents(volume, number));
        }
    }
}

/// The result of a step; an error is an answer, and it must have a message.
fn sound<T>(result: Result<T, Error>) -> Option<T> {
    result.map_err(|error| assert!(!error.to_string().is_empty(), "an error without message")).ok()
}

fn inode_contents(
    volume: &Arc<Volume>,
    device: &PatchedDevice,
    step: u64,
    inode: &InodeState,
    waiting: &mut Vec<InodeNumber>,
) {
    device.allow(step);
    sound(ops::attributes(volume, inode));
    match inode.file_type() {
        FileType::Directory => directory(volume, device, step, inode, waiting),
        FileType::Symlink => drop(sound(ops::read_link(volume, inode))),
        FileType::Regular => drop(sound(ops::data_ranges(volume, inode))),
        _ => {}
    }
}

fn directory(
    volume: &Arc<Volume>,
    device: &PatchedDevice,
    step: u64,
    inode: &InodeState,
    waiting: &mut Vec<InodeNumber>,
) {
    device.allow(step);
    let (mut names, mut last) = (Vec::new(), Position::START);
    let listed = ops::entries(volume, inode, Position::START, |entry| {
        assert!(entry.next > last, "a listing does not go forward");
        last = entry.next;
        names.push(entry.name.to_vec());
        waiting.push(entry.inode);
        true
    });
    assert!(waiting.len() < 1 << 20, "more names than the volume has room for");
    if sound(listed).is_some() {
        sound(ops::entries(volume, inode, last, |_| false));
    }
    names.truncate(LOOKUPS);
    names.push(b"no such name".to_vec());
    for name in names {
        device.allow(step);
        sound(ops::lookup(volume, inode, &name));
    }
}

/// Reads a file up to a limit, its holes too.
fn contents(volume: &Arc<Volume>, number: InodeNumber) -> Result<(), Error> {
    let file = OpenFile::open(volume, number)?;
    let (size, mut at) = (file.size(), 0);
    let mut buffer = vec![0; CHUNK];
    for _ in 0..READS {
        let len = file.read(at, &mut buffer)? as u64;
        assert_eq!(len, (size - at).min(CHUNK as u64), "a read is not as long as the file");
        if len == 0 {
            break;
        }
        at += len;
    }
    Ok(())
}
