//! Inodes that change, written: their maps first, whose trees need blocks.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;
use undercroft_xfs::format::{
    ForkFormat, InodeFlags2, RmapFlags, RmapOwner, RmapRecord, bytes, inode_crc_matches,
    stamp_inode_crc,
};
use undercroft_xfs::units::{AgNumber, FileBlock, FsBlock, InodeNumber};

use crate::action::Place;
use crate::chunks::Chunks;
use crate::claims;
use crate::error::RepairError;
use crate::free::Free;
use crate::inode::Inode;
use crate::inode::contents::Refill;
use crate::inode::sound::Sound;
use crate::structure::Structure;
use crate::subject::Subject;
use crate::tree::{map_blocks, write_map};

/// Writes inodes that change, and takes blocks for their maps.
pub(crate) struct Writer<'s> {
    pub(crate) subject: &'s mut Subject,
    pub(crate) chunks: &'s Chunks,
    /// Groups whose trees have to be made anew.
    pub(crate) groups: &'s mut BTreeSet<AgNumber>,
    free: BTreeMap<AgNumber, Free>,
}

impl<'s> Writer<'s> {
    pub(crate) fn new(
        subject: &'s mut Subject,
        chunks: &'s Chunks,
        groups: &'s mut BTreeSet<AgNumber>,
    ) -> Self {
        Self { subject, chunks, groups, free: BTreeMap::new() }
    }

    /// Writes the inodes; returns what is to be put into them.
    pub(crate) fn write(
        &mut self,
        structure: &mut Structure,
    ) -> Result<Vec<(InodeNumber, Refill)>, RepairError> {
        let mut refills = Vec::new();
        let shared = std::mem::take(&mut structure.shared);
        let inodes = std::mem::take(&mut structure.inodes);
        for (number, mut inode) in inodes {
            if shared.contains(&number) {
                inode.core.flags2 |= InodeFlags2::REFLINK;
            }
            self.inode(structure, &mut inode)?;
            let refill = std::mem::take(&mut inode.refill);
            if refill != Refill::default() {
                refills.push((number, refill));
            }
        }
        self.mark_shared(&shared)?;
        Ok(refills)
    }

    fn inode(&mut self, structure: &mut Structure, inode: &mut Inode) -> Result<(), RepairError> {
        let number = inode.number;
        let old = self.subject.read_inode(number)?;
        let mut before = None;
        if let Some(sound) = Sound::read(self.subject, number, &old) {
            let mut claims = Vec::new();
            sound.claims(self.subject, &mut |ag, record| claims.push((ag, record)));
            before = Some(claims);
        }
        for is_attr in [false, true] {
            self.map(structure, inode, is_attr)?;
        }
        let blocks = [&inode.data, &inode.attr].map(|map| {
            let data = map.extents.iter().map(|extent| u64::from(extent.len)).sum::<u64>();
            data + map.tree.len() as u64
        });
        inode.core.nblocks = blocks.iter().sum();
        let mut new = inode.bytes.clone();
        if inode.core.encode(&mut new, &self.subject.geometry).is_err() {
            let what = format!("the times of inode {number} cannot be stored");
            return Err(RepairError::NotSupported(what));
        }
        stamp_inode_crc(&mut new);
        if new != old {
            if inode.notes.is_empty() {
                let what = if inode_crc_matches(&old) {
                    "counters are wrong: set right"
                } else {
                    "its checksum is wrong, and every field can be right: all are kept, and one of them may be \
                     doubtful"
                };
                inode.notes.push((what.into(), None));
            }
            self.subject.write_inode(number, &mut new)?;
        }
        let mut claims = Vec::new();
        inode.claims(self.subject, &mut |ag, record| claims.push((ag, record)));
        if before.as_ref() != Some(&claims) {
            let both = claims.iter().chain(before.iter().flatten());
            self.groups.extend(both.map(|(ag, _)| *ag));
        }
        for (what, loss) in std::mem::take(&mut inode.notes) {
            match loss {
                Some(loss) => self.subject.note_loss(Place::Inode(number), what, loss),
                None => self.subject.note(Place::Inode(number), what),
            }
        }
        Ok(())
    }

    /// Writes one map into the bytes of the inode, if it is new, and sets its counter.
    fn map(
        &mut self,
        structure: &mut Structure,
        inode: &mut Inode,
        is_attr: bool,
    ) -> Result<(), RepairError> {
        let geometry = self.subject.geometry.clone();
        let (range, format) = if is_attr {
            (inode.core.attr_fork(&geometry), inode.core.attr_format)
        } else {
            (inode.core.data_fork(&geometry), inode.core.data_format)
        };
        if !matches!(format, ForkFormat::Extents | ForkFormat::Btree) {
            return Ok(());
        }
        let map = if is_attr { &mut inode.attr } else { &mut inode.data };
        let is_tree = map.extents.len() > range.len() / 16;
        let mut format = format;
        if map.is_new || (is_tree != (format == ForkFormat::Btree)) {
            let count = map_blocks(&geometry, map.extents.len(), range.len());
            let ag = geometry.split_inode(inode.number).0;
            let blocks = take(self, structure, ag, count)?;
            let flags = RmapFlags::BMBT_BLOCK
                | if is_attr { RmapFlags::ATTR_FORK } else { RmapFlags::empty() };
            for block in &blocks {
                let (ag, start) = geometry.split_block(*block);
                let owner = RmapOwner::inode(inode.number);
                let offset = FileBlock(0);
                structure.claims.add(ag, &RmapRecord { start, len: 1, owner, offset, flags });
            }
            let fork = &mut inode.bytes[range];
            let scratch = &self.subject.scratch;
            let told = (&inode.core, &map.extents[..]);
            format = write_map(&geometry, scratch, told, fork, &blocks)?;
            map.tree = blocks;
        }
        let count = map.extents.len() as u64;
        if is_attr {
            (inode.core.attr_format, inode.core.attr_extents) = (format, count as u32);
        } else {
            (inode.core.data_format, inode.core.data_extents) = (format, count);
        }
        Ok(())
    }

    fn mark_shared(&mut self, shared: &FxHashSet<InodeNumber>) -> Result<(), RepairError> {
        const FLAGS2: usize = 120;
        for number in shared {
            let mut inode = self.subject.read_inode(*number)?;
            let flags = bytes::be64(&inode, FLAGS2);
            if flags & InodeFlags2::REFLINK.bits() == 0 {
                bytes::put_be64(&mut inode, FLAGS2, flags | InodeFlags2::REFLINK.bits());
                self.subject.write_inode(*number, &mut inode)?;
                let what = "it shares blocks and does not say so: set right";
                self.subject.note(Place::Inode(*number), what);
            }
        }
        Ok(())
    }
}

/// Free blocks, near a group.
fn take(
    writer: &mut Writer<'_>,
    structure: &Structure,
    near: AgNumber,
    count: usize,
) -> Result<Vec<FsBlock>, RepairError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let groups = writer.subject.geometry.ag_count;
    let order = (near.0..groups).chain(0..near.0).map(AgNumber);
    let order = order.filter(|ag| structure.claims.has(*ag));
    for ag in order {
        let (subject, chunks) = (&*writer.subject, writer.chunks);
        let free = writer.free.entry(ag).or_insert_with(|| {
            let mut all = claims::fixed(subject, chunks, ag);
            all.extend(structure.claims.of(ag));
            Free::of(subject.geometry.ag_length(ag), &all)
        });
        if let Some(blocks) = free.take(count as u32) {
            writer.groups.insert(ag);
            let place = |block| writer.subject.geometry.fs_block(ag, block);
            return Ok(blocks.into_iter().map(place).collect());
        }
    }
    Err(RepairError::NotSupported("no room for the map of a file".into()))
}
