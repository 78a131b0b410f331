//! Every inode of a chunk: its core, its forks and their contents.

use super::checker::Checker;
use super::forks::{self, Claims, Fork};
use super::inode_table::{Chunk, InodeTable, Kind, Position, Slot};
use super::inode_trees::runs;
use super::subject::{Scan, Subject};
use super::{Finding, Location, attributes, directory_entries, quota, symlink};
use crate::bytes::be16;
use crate::format::{
    FileType, ForkFormat, InodeCore, InodeFlags, InodeFlags2, Timestamp, inode_crc_matches,
};
use crate::inode::ForkKind;
use crate::units::{AgInode, InodeNumber};

/// Checks all inodes of chunk `index` of the table.
pub(super) fn check_chunk(scan: &Scan<'_>, claims: &mut Claims, place: usize) {
    let (checker, chunk) = (scan.checker, &scan.table.chunks[place]);
    let geometry = checker.geometry();
    let size = geometry.inode_size();
    for (first, len) in runs(chunk.record.existing()) {
        let start = AgInode(chunk.record.start.0 + first);
        let (block, _) = geometry.inode_block(start);
        // Inodes of 256 bytes (version 4) come in chunks of whole sectors all the same.
        let sector = geometry.inode_sector(geometry.inode_number(chunk.ag, start));
        let sectors = (len as usize * size / 512) as u32;
        let bytes = match checker.read_bytes(&[(sector, sectors)]) {
            Ok(bytes) => bytes,
            Err(what) => {
                checker.error("inode chunk", Location::Block(chunk.ag, block), what);
                checker.set_incomplete();
                continue;
            }
        };
        for (index, inode) in (first..).zip(bytes.chunks_exact(size)) {
            check(scan, claims, (chunk, InodeTable::position(place, index)), index, inode);
        }
    }
}

fn check(
    scan: &Scan<'_>,
    claims: &mut Claims,
    (chunk, position): (&Chunk, Position),
    index: u32,
    bytes: &[u8],
) {
    let (checker, slot) = (scan.checker, chunk.slot(index));
    let geometry = checker.geometry();
    let (number, free) = (chunk.number(geometry, index), chunk.is_free(index));
    let location = Location::Inode(number);
    let decoded = if geometry.features.crc && !inode_crc_matches(bytes) {
        Err("checksum does not match".to_owned())
    } else {
        InodeCore::decode(bytes, geometry)
    };
    let core = match decoded {
        Ok(core) => core,
        Err(what) => {
            checker.error("inode", location, what);
            if !free {
                slot.set_kind(Kind::Damaged);
                checker.set_incomplete();
            }
            return;
        }
    };
    if geometry.features.crc {
        checker.note_lsn(core.lsn);
    }
    let verdict = core.verify(number, geometry);
    if let Err(what) = &verdict {
        checker.error("inode", location, what.clone());
    }
    next_unlinked(checker, location, &core);
    if free || core.mode == 0 {
        return check_free(checker, slot, number, &core, free);
    }
    let Some(file_type) = core.file_type() else {
        slot.set_kind(Kind::Damaged);
        checker.set_incomplete();
        return;
    };
    slot.set_kind(Kind::File(file_type));
    slot.set_counted(core.nlink);
    if core.flags2.contains(InodeFlags2::REFLINK) {
        slot.set_flag(Slot::REFLINK);
    }
    if core.flags2.contains(InodeFlags2::METADATA) {
        slot.set_flag(Slot::METADATA);
    }
    let subject = Subject { number, core: &core, bytes, chunk, index, position };
    times(checker, &subject);
    old_links(checker, &subject);
    flags(checker, &subject, file_type);
    realtime(checker, &subject);
    content(scan, claims, &subject, file_type, verdict.is_ok());
}

/// Only an inode without links is on a list of unlinked ones. In a free inode the field stays for the
/// file that gets the inode next.
fn next_unlinked(checker: &Checker, location: Location, core: &InodeCore) {
    let unlinked = core.mode != 0 && core.nlink == 0;
    if !core.next_unlinked.is_null() && !unlinked && !checker.dirty() {
        let what = format!("is {}, but the inode is on no list", core.next_unlinked);
        checker.add(Finding { field: "next_unlinked", ..Finding::error("inode", location, what) });
    }
}

/// A free inode is free in the tree and in its core.
fn check_free(checker: &Checker, slot: &Slot, number: InodeNumber, core: &InodeCore, free: bool) {
    let location = Location::Inode(number);
    if !free {
        checker.error("inode", location, "is in use by its chunk, but its mode is 0");
        slot.set_kind(Kind::Damaged);
        checker.set_incomplete();
    } else if core.mode != 0 {
        let what = format!("is free by its chunk, but its mode is {:#o}", core.mode);
        checker.error("inode", location, what);
        checker.set_incomplete();
    } else if core.nblocks != 0 || core.data_extents != 0 || core.attr_extents != 0 {
        let what = format!("is free, but has {} blocks", core.nblocks);
        checker.error("inode", location, what);
    }
}

fn times(checker: &Checker, subject: &Subject<'_>) {
    let core = subject.core;
    // The realtime bitmap keeps a sequence number there.
    let atime = (!core.flags.contains(InodeFlags::NEWRTBM)).then_some(("atime", core.atime));
    let others = [("mtime", core.mtime), ("ctime", core.ctime), ("crtime", core.crtime)];
    for (field, time) in atime.into_iter().chain(others) {
        let Timestamp { seconds, nanoseconds } = time;
        if let Err(error) = time.encode(core.timestamp_encoding()) {
            let (first, last) = (error.first, error.last);
            let what =
                format!("is {seconds} s + {nanoseconds} ns, outside {first} to {last} and 10^9");
            let finding = Finding::error("inode", subject.location(), what);
            checker.add(Finding { field, ..finding });
        }
    }
}

/// Inodes of version 1 counted links where those of version 2 have nothing.
fn old_links(checker: &Checker, subject: &Subject<'_>) {
    let (version, links) = (subject.bytes[4], be16(subject.bytes, 6));
    if version == 2 {
        checker.expect("inode", subject.location(), "onlink", links, 0);
    }
}

/// Flags that depend on the type or on the volume.
fn flags(checker: &Checker, subject: &Subject<'_>, file_type: FileType) {
    let (flags, location) = (subject.core.flags, subject.location());
    let directory_only = InodeFlags::RTINHERIT
        | InodeFlags::PROJINHERIT
        | InodeFlags::NOSYMLINKS
        | InodeFlags::EXTSZINHERIT;
    let stray = flags & directory_only;
    if file_type != FileType::Directory && !stray.is_empty() {
        checker.error("inode", location, format!("{stray:?} is for directories"));
    }
    let is_bitmap = subject.number == checker.volume.superblock().rt_bitmap_inode
        || subject.core.flags2.contains(InodeFlags2::METADATA);
    if flags.contains(InodeFlags::NEWRTBM) && !is_bitmap {
        checker.error("inode", location, "the flag NEWRTBM is for the realtime bitmap");
    }
    let has_data = matches!(file_type, FileType::Regular | FileType::Directory);
    if subject.core.flags2.contains(InodeFlags2::DAX) && !has_data {
        checker.error("inode", location, "the flag DAX is for files and directories");
    }
    if flags.contains(InodeFlags::REALTIME) {
        let superblock = checker.volume.superblock();
        if file_type != FileType::Regular {
            checker.error("inode", location, "the realtime flag is for regular files");
        } else if superblock.rt_blocks == 0 {
            checker.error("inode", location, "realtime flag, but there is no realtime device");
        }
    }
}

/// Without a realtime device there is nothing in its bitmap and its summary.
fn realtime(checker: &Checker, subject: &Subject<'_>) {
    let superblock = checker.volume.superblock();
    let is_own =
        [superblock.rt_bitmap_inode, superblock.rt_summary_inode].contains(&subject.number);
    if is_own && superblock.rt_blocks == 0 {
        checker.expect("inode", subject.location(), "size", subject.core.size, 0);
    }
}

fn content(
    scan: &Scan<'_>,
    claims: &mut Claims,
    subject: &Subject<'_>,
    file_type: FileType,
    sound: bool,
) {
    let (checker, core, location) = (scan.checker, subject.core, subject.location());
    let mut load = |kind| {
        let bytes = subject.fork_bytes(checker, kind);
        forks::load(checker, claims, subject.number, core, kind, bytes)
    };
    let data = load(ForkKind::Data);
    let attr = (core.forkoff != 0).then(|| load(ForkKind::Attr));
    let blocks = data.blocks + attr.as_ref().map_or(0, |fork| fork.blocks);
    let complete = data.complete && attr.as_ref().is_none_or(|fork| fork.complete);
    if complete && core.data_format != ForkFormat::MetaBtree {
        checker.expect("inode", location, "nblocks", core.nblocks, blocks);
    }
    match file_type {
        FileType::Directory => directory_entries::check(scan, subject, &data),
        FileType::Symlink => symlink::check(scan.checker, subject, &data),
        FileType::Regular if quota::is_quota(checker, subject) => {
            quota::check(checker, subject, &data);
        }
        FileType::Regular => regular(checker, subject, &data),
        _ => {}
    }
    // A fork at an offset that cannot be holds nothing that can be read.
    match attr.filter(|_| sound || core.forkoff != 0) {
        Some(fork) => attributes::check(scan, subject, &fork),
        None => subject.slot().set_flag(Slot::POINTERS_KNOWN),
    }
}

/// Size of a regular file against its mapping.
fn regular(checker: &Checker, subject: &Subject<'_>, data: &Fork) {
    let geometry = checker.geometry();
    let end = geometry.blocks_for(subject.core.size);
    let behind: u64 = data
        .extents
        .iter()
        .filter(|extent| !extent.unwritten && extent.end().0 > end)
        .map(|extent| extent.end().0 - extent.offset.0.max(end))
        .sum();
    if behind > 0 {
        let what = format!("{behind} written blocks lie behind its size of {}", subject.core.size);
        checker.add(Finding::warning("inode", subject.location(), what));
    }
}
