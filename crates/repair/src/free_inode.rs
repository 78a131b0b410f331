//! Inodes that are free, or should be.

use std::collections::{BTreeMap, BTreeSet};

use undercroft_xfs::format::{
    FileType, INODE_GENERATION_OFFSET, InodeCore, InodeFlags2, bytes, inode_crc_matches,
};
use undercroft_xfs::units::{AgNumber, InodeNumber};

use crate::action::Place;
use crate::chunks::Chunks;
use crate::error::RepairError;
use crate::faults::Parts;
use crate::inode;
use crate::subject::Subject;

/// An inode that is free by its chunk and has faults: in use if it says so, else made free in all ways.
pub(crate) fn settle(
    subject: &mut Subject,
    number: InodeNumber,
    chunks: &mut Chunks,
    damaged: &mut BTreeMap<InodeNumber, Parts>,
    groups: &mut BTreeSet<AgNumber>,
) -> Result<(), RepairError> {
    let bytes = subject.read_inode(number)?;
    let is_alive =
        inode::core::is_left_of(&bytes, number, &subject.geometry) && is_alive(&bytes, subject);
    if is_alive {
        chunks.set(&subject.geometry, number, true);
        groups.insert(subject.geometry.split_inode(number).0);
        damaged.insert(number, Parts::CORE);
        subject.note(Place::Inode(number), "it is in use, and counts as free: set right");
    } else if !is_sound_free(&bytes, number, subject) {
        write_free(subject, number)?;
        subject.note(Place::Inode(number), "it is free, and does not say so: set right");
    }
    Ok(())
}

/// Whether the bytes of an inode say that there is a file: a type, names or blocks.
pub(crate) fn is_alive(inode: &[u8], subject: &Subject) -> bool {
    let (mode, links) = (bytes::be16(inode, 2), bytes::be32(inode, 16));
    let has_kind = FileType::from_mode(mode).is_some();
    let blocks = bytes::be64(inode, 64);
    let has_blocks = blocks > 0 && blocks <= subject.geometry.blocks;
    (has_kind && links > 0)
        || (links > 0 && links < 1 << 20 && has_blocks)
        || (has_kind && has_blocks)
}

/// Whether the bytes of an inode say that there is no file.
pub(crate) fn is_free(inode: &[u8]) -> bool {
    let (mode, links) = (bytes::be16(inode, 2), bytes::be32(inode, 16));
    mode == 0 && links == 0 && bytes::be64(inode, 64) == 0
}

fn is_sound_free(inode: &[u8], number: InodeNumber, subject: &Subject) -> bool {
    let core = InodeCore::decode(inode, &subject.geometry);
    inode_crc_matches(inode)
        && core.is_ok_and(|core| {
            core.verify(number, &subject.geometry).is_ok()
                && core.mode == 0
                && core.nblocks == 0
                && core.data_extents == 0
                && core.attr_extents == 0
        })
}

/// Where a free inode has fields that `xfs_repair` wants to be as in a new one.
mod at {
    pub(super) const EXTSIZE: usize = 72;
    pub(super) const FORKOFF: usize = 82;
    pub(super) const ATTR_FORMAT: usize = 83;
    pub(super) const FLAGS: usize = 90;
    pub(super) const FLAGS2: usize = 120;
    pub(super) const COWEXTSIZE: usize = 128;
}

/// Clears the fields of a free inode that are never read and that `xfs_repair` complains of. What it still says of
/// the file that was removed stays.
pub(crate) fn tidy(subject: &Subject, number: InodeNumber) -> Result<(), RepairError> {
    let old = subject.read_inode(number)?;
    if !is_free(&old) || !inode_crc_matches(&old) {
        return Ok(());
    }
    let mut inode = old.clone();
    bytes::put_be32(&mut inode, at::EXTSIZE, 0);
    inode[at::FORKOFF] = 0;
    inode[at::ATTR_FORMAT] = if old[at::ATTR_FORMAT] == 0 { 0 } else { 2 };
    bytes::put_be16(&mut inode, at::FLAGS, 0);
    let kept = (InodeFlags2::BIGTIME | InodeFlags2::NREXT64).bits();
    let flags2 = bytes::be64(&old, at::FLAGS2) & kept;
    bytes::put_be64(&mut inode, at::FLAGS2, flags2);
    bytes::put_be32(&mut inode, at::COWEXTSIZE, 0);
    if inode != old { subject.write_inode(number, &mut inode) } else { Ok(()) }
}

/// Makes the bytes of an inode those of one that was never used, of the next generation.
pub(crate) fn write_free(subject: &Subject, number: InodeNumber) -> Result<(), RepairError> {
    let mut inode = subject.read_inode(number)?;
    let generation = bytes::be32(&inode, INODE_GENERATION_OFFSET).wrapping_add(1);
    InodeCore::write_never_used(&mut inode, &subject.geometry, number, generation);
    subject.write_inode(number, &mut inode)
}
