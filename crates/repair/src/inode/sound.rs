//! The blocks that an inode without faults of its own claims: seen without a copy of it.

use undercroft_xfs::format::{InodeCore, RmapFlags, RmapOwner, RmapRecord, inode_crc_matches};
use undercroft_xfs::units::{AgNumber, FileBlock, InodeNumber};

use super::map::{self, ForkMap};
use crate::subject::Subject;

/// An inode without faults of its own, and its maps.
pub(crate) struct Sound {
    pub(crate) number: InodeNumber,
    pub(crate) core: InodeCore,
    pub(crate) data: ForkMap,
    pub(crate) attr: ForkMap,
}

impl Sound {
    /// The inode that bytes are; `None` if it has faults.
    pub(crate) fn read(subject: &Subject, number: InodeNumber, bytes: &[u8]) -> Option<Self> {
        let geometry = &subject.geometry;
        if !inode_crc_matches(bytes) {
            return None;
        }
        let core = InodeCore::decode(bytes, geometry).ok()?;
        core.verify(number, geometry).ok()?;
        core.file_type()?;
        let shape = (core.data_format, core.data_extents);
        let fork = &bytes[core.data_fork(geometry)];
        let data = map::read(subject, number, shape, fork, None, false);
        let mut attr = ForkMap::default();
        if core.forkoff != 0 {
            let shape = (core.attr_format, core.attr_extents.into());
            let fork = &bytes[core.attr_fork(geometry)];
            attr = map::read(subject, number, shape, fork, None, false);
        }
        let is_whole = !data.is_new && !attr.is_new;
        is_whole.then_some(Self { number, core, data, attr })
    }

    /// The blocks that it claims, by group.
    pub(crate) fn claims(&self, subject: &Subject, to: &mut dyn FnMut(AgNumber, RmapRecord)) {
        claims(subject, self.number, [&self.data, &self.attr], to);
    }
}

/// The blocks that the maps of the data and of the attributes of an inode claim.
pub(crate) fn claims(
    subject: &Subject,
    number: InodeNumber,
    maps: [&ForkMap; 2],
    to: &mut dyn FnMut(AgNumber, RmapRecord),
) {
    let geometry = &subject.geometry;
    let owner = RmapOwner::inode(number);
    for (map, fork) in maps.into_iter().zip([RmapFlags::empty(), RmapFlags::ATTR_FORK]) {
        for extent in &map.extents {
            let (ag, start) = geometry.split_block(extent.start);
            let state = if extent.unwritten { RmapFlags::UNWRITTEN } else { RmapFlags::empty() };
            let (len, offset) = (extent.len, extent.offset);
            to(ag, RmapRecord { start, len, owner, offset, flags: fork | state });
        }
        for block in &map.tree {
            let (ag, start) = geometry.split_block(*block);
            let flags = fork | RmapFlags::BMBT_BLOCK;
            let offset = FileBlock(0);
            to(ag, RmapRecord { start, len: 1, owner, offset, flags });
        }
    }
}
