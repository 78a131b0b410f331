//! Intents that a kernel left unfinished, carried out
//! (docs/format/journal/intents.md#carrying-out).
//!
//! All unfinished intents are finished in one transaction: either all of it is in the journal, with
//! what says that they are done, or recovery starts again from the same place.

use super::owners;
use crate::alloc;
use crate::attr::{self, Attribute};
use crate::bmap::{self, ForkWriter};
use crate::error::Error;
use crate::format::{
    AllocRecord, AttrAction, AttrChange, Exchange, ExchangeFlags, Extent, ExtentChange,
    InodeFlags2, Intent, IntentDevice, IntentWork, MappingAction, MappingChange, NameValue,
    Namespace, RefcountAction, RefcountChange, ReverseAction, ReverseChange, RmapRecord,
};
use crate::group_tree::rmap::{self, Sharing};
use crate::inode::{ForkKind, InodeGuard};
use crate::refcount;
use crate::trans::Transaction;
use crate::units::{AgBlock, AgNumber, FileBlock, FsBlock, InodeNumber, Lsn};
use crate::volume::Volume;
use std::collections::BTreeMap;

/// Intents on their way to be done.
struct Finisher<'v> {
    trans: Transaction<'v>,
    inodes: BTreeMap<InodeNumber, InodeGuard>,
    /// Blocks that lost their last owner. They are freed at the end: other intents may still be
    /// about them.
    freed: Vec<(AgNumber, AllocRecord)>,
}

/// Finishes intents, each with the position at which it was logged.
///
/// A kernel's changes of free space and owners follow from its changes of mappings, and those from
/// exchanges of mappings. It finishes the former before it goes on with the latter, so that no
/// block is recorded with two owners at a time. Of one kind, the oldest comes first.
///
/// # Errors
/// An intent cannot be finished: it is about something that does not exist, or a structure is
/// damaged. Nothing of the volume is changed then.
pub(super) fn finish(volume: &Volume, unfinished: &[(Intent, Lsn)]) -> Result<(), Error> {
    let trans = volume.begin_sized(volume.log_room())?;
    let mut work = Finisher { trans, inodes: BTreeMap::new(), freed: Vec::new() };
    work.trans.begin_changes();
    let mut unfinished: Vec<_> = unfinished.iter().collect();
    unfinished.sort_by_key(|(intent, _)| match intent.work {
        IntentWork::Exchange(_) => 2,
        IntentWork::Mapping(_) => 1,
        _ => 0,
    });
    for (intent, lsn) in unfinished {
        work.intent(intent).map_err(|error| Error::Journal {
            lsn: *lsn,
            what: format!("the unfinished {:?} {:#x}: {error}", intent.kind(), intent.id),
        })?;
        work.trans.note_done(&intent.done());
    }
    let Finisher { mut trans, mut inodes, freed } = work;
    for (ag, AllocRecord { start, len }) in freed {
        trans.in_group(ag, |trans, group| alloc::free_in_group(trans, group, start, len, None))?;
    }
    trans.commit(&mut inodes.values_mut().collect::<Vec<_>>())
}

fn impossible(what: impl Into<String>) -> Error {
    Error::Invalid(what.into())
}

impl Finisher<'_> {
    fn intent(&mut self, intent: &Intent) -> Result<(), Error> {
        if intent.device == IntentDevice::Realtime {
            return Err(impossible("it is about the realtime device, which is not maintained"));
        }
        match &intent.work {
            IntentWork::Free(extents) => extents.iter().try_for_each(|extent| self.free(extent)),
            IntentWork::Reverse(changes) => changes.iter().try_for_each(|one| self.reverse(one)),
            IntentWork::Refcount(changes) => changes.iter().try_for_each(|one| self.count(one)),
            IntentWork::Mapping(change) => self.mapping(change),
            IntentWork::Attr(change) => self.attribute(change),
            IntentWork::Exchange(exchange) => self.exchange(exchange),
        }
    }

    /// Group and block of the first of `len` blocks, which must exist.
    fn place(&self, start: FsBlock, len: u32) -> Result<(AgNumber, AgBlock), Error> {
        let geometry = self.trans.geometry();
        if !geometry.valid_extent(start, len.into()) {
            return Err(impossible(format!("{len} blocks from {start} are not in one group")));
        }
        Ok(geometry.split_block(start))
    }

    /// The inode, locked to the end.
    fn lock(&mut self, number: InodeNumber) -> Result<(), Error> {
        if !self.inodes.contains_key(&number) {
            let guard = self.trans.volume().lock_inode(number).map_err(Error::into_damage)?;
            self.inodes.insert(number, guard);
        }
        Ok(())
    }

    /// Frees an extent. Its reverse mapping may be there, of any owner, or not any more.
    fn free(&mut self, extent: &ExtentChange) -> Result<(), Error> {
        let ExtentChange { start, len } = *extent;
        let (ag, block) = self.place(start, len)?;
        self.trans.in_group(ag, |trans, group| {
            owners::remove_any(trans, group, block, len)?;
            alloc::free_in_group(trans, group, block, len, None)
        })
    }

    fn reverse(&mut self, change: &ReverseChange) -> Result<(), Error> {
        use ReverseAction as Action;
        let ReverseChange { action, owner, offset, len, flags, .. } = *change;
        let (ag, start) = self.place(change.start, len)?;
        let record = RmapRecord { start, len, owner, offset, flags };
        let sharing = match action {
            Action::MapShared | Action::UnmapShared | Action::ConvertShared => Sharing::Possible,
            _ => Sharing::Excluded,
        };
        self.trans.in_group(ag, |trans, group| {
            alloc::fill_free_list(trans, group)?;
            match action {
                Action::Map | Action::MapShared | Action::Allocate => {
                    rmap::add(trans, group, record, sharing)
                }
                Action::Unmap | Action::UnmapShared | Action::Free => {
                    rmap::remove(trans, group, record, sharing)
                }
                Action::Convert | Action::ConvertShared => {
                    owners::convert(trans, group, record, sharing)
                }
            }
        })
    }

    fn count(&mut self, change: &RefcountChange) -> Result<(), Error> {
        let RefcountChange { action, start, len } = *change;
        let (ag, block) = self.place(start, len)?;
        let freed = self.trans.in_group(ag, |trans, group| {
            alloc::fill_free_list(trans, group)?;
            match action {
                RefcountAction::Decrease => {
                    return refcount::decrease(trans, group, block, len);
                }
                RefcountAction::Increase => refcount::increase(trans, group, block, len)?,
                RefcountAction::AllocateCow => refcount::add_staging(trans, group, block, len)?,
                RefcountAction::FreeCow => refcount::remove_staging(trans, group, block, len)?,
            }
            Ok(refcount::Freed::new())
        })?;
        self.freed.extend(freed.into_iter().map(|record| (ag, record)));
        Ok(())
    }

    fn mapping(&mut self, change: &MappingChange) -> Result<(), Error> {
        let MappingChange { inode, start, offset, len, unwritten, .. } = *change;
        if change.realtime {
            return Err(impossible("it is about the realtime device, which is not maintained"));
        }
        self.place(start, len)?;
        let end = FileBlock(offset.0.saturating_add(len.into()));
        if len > Extent::MAX_LEN || end > FileBlock::MAX {
            return Err(impossible(format!("{len} blocks of a file from {offset}")));
        }
        let kind = if change.attr_fork { ForkKind::Attr } else { ForkKind::Data };
        self.lock(inode)?;
        match change.action {
            MappingAction::Map => {
                self.attach(inode, kind, Extent { offset, start, len, unwritten })
            }
            MappingAction::Unmap => self.detach(inode, kind, (offset, end)).map(drop),
        }
    }

    /// Maps an extent of blocks that are allocated.
    fn attach(&mut self, number: InodeNumber, kind: ForkKind, new: Extent) -> Result<(), Error> {
        let Self { trans, inodes, .. } = self;
        let Some(inode) = inodes.get_mut(&number) else { return Ok(()) };
        let extents = bmap::extents(trans.volume(), inode, kind)?;
        if extents.last_in(new.offset, new.end()).is_some() {
            let what = format!("blocks from {} on of inode {number} are mapped", new.offset);
            return Err(impossible(what));
        }
        bmap::prepare(trans, inode, kind, &[new.start], &[new.offset], 1)?;
        bmap::add(trans, inode, kind, &[new])?;
        inode.touch();
        Ok(())
    }

    /// Unmaps a range, whose blocks stay allocated; returns the mapped extents, last first.
    fn detach(
        &mut self,
        number: InodeNumber,
        kind: ForkKind,
        (from, to): (FileBlock, FileBlock),
    ) -> Result<Vec<Extent>, Error> {
        let Self { trans, inodes, .. } = self;
        let mut parts = Vec::new();
        let Some(inode) = inodes.get_mut(&number) else { return Ok(parts) };
        while let Some((_, part)) = bmap::extents(trans.volume(), inode, kind)?.last_in(from, to) {
            bmap::prepare(trans, inode, kind, &[part.start], &[part.offset], 1)?;
            bmap::detach(trans, inode, kind, part)?;
            parts.push(part);
        }
        inode.touch();
        Ok(parts)
    }

    fn attribute(&mut self, change: &AttrChange) -> Result<(), Error> {
        let AttrChange { inode: number, generation, filter, action } = change;
        let namespace = Namespace::from_flags(*filter)
            .ok_or_else(|| impossible(format!("attribute flags {filter:?}")))?;
        self.lock(*number)?;
        let Self { trans, inodes, .. } = self;
        let Some(inode) = inodes.get_mut(number) else { return Ok(()) };
        if namespace == Namespace::Parent && inode.core.generation != *generation {
            return Err(impossible(format!("inode {number} is another one by now")));
        }
        let mut fork = ForkWriter::new(trans, inode, ForkKind::Attr);
        let named = |pair: &'_ NameValue| (pair.name.clone(), pair.value.clone());
        let (gone, new) = match action {
            AttrAction::Set(pair) | AttrAction::Replace(pair) | AttrAction::SetParent(pair) => {
                (None, Some(named(pair)))
            }
            AttrAction::Remove(name) => (Some((name.clone(), Vec::new())), None),
            AttrAction::RemoveParent(pair) => (Some(named(pair)), None),
            AttrAction::ReplaceParent { old, new } => (Some(named(old)), Some(named(new))),
        };
        if let Some((name, value)) = gone {
            // One that is not there was removed already.
            attr::finish_removal(&mut fork, &Attribute { namespace, name: &name, value: &value })?;
        }
        if let Some((name, value)) = new {
            let attribute = Attribute { namespace, name: &name, value: &value };
            attr::set(&mut fork, &attribute, attr::SetMode::Either)?;
        }
        inode.touch();
        Ok(())
    }

    /// Exchanges the rest of the ranges of two files.
    fn exchange(&mut self, exchange: &Exchange) -> Result<(), Error> {
        let Exchange { sides, blocks, flags } = exchange;
        let kind =
            if flags.contains(ExchangeFlags::ATTR_FORK) { ForkKind::Attr } else { ForkKind::Data };
        if sides[0].inode == sides[1].inode {
            return Err(impossible("it exchanges blocks of one file"));
        }
        for side in sides {
            self.lock(side.inode)?;
            if self.inodes[&side.inode].core.generation != side.generation {
                return Err(impossible(format!("inode {} is another one by now", side.inode)));
            }
            if side.start.0.checked_add(*blocks).is_none_or(|end| end > FileBlock::MAX.0) {
                return Err(impossible(format!("{blocks} blocks of a file from {}", side.start)));
            }
        }
        let ranges = if flags.contains(ExchangeFlags::FIRST_WRITTEN) {
            self.written(sides[0].inode, kind, sides[0].start, *blocks)?
        } else {
            vec![(0, *blocks)]
        };
        for (from, to) in ranges {
            let range = |start: FileBlock| (FileBlock(start.0 + from), FileBlock(start.0 + to));
            let first = self.detach(sides[0].inode, kind, range(sides[0].start))?;
            let second = self.detach(sides[1].inode, kind, range(sides[1].start))?;
            for (parts, old, new) in [(first, sides[0], sides[1]), (second, sides[1], sides[0])] {
                for part in parts {
                    let offset = FileBlock(part.offset.0 - old.start.0 + new.start.0);
                    self.attach(new.inode, kind, Extent { offset, ..part })?;
                }
            }
        }
        let clear = [ExchangeFlags::FIRST_CLEAR_REFLINK, ExchangeFlags::SECOND_CLEAR_REFLINK];
        for (side, clear) in sides.iter().zip(clear) {
            if let Some(inode) = self.inodes.get_mut(&side.inode) {
                if flags.contains(ExchangeFlags::SET_SIZES) {
                    inode.core.size = side.size;
                }
                if flags.contains(clear) {
                    inode.core.flags2.remove(InodeFlags2::REFLINK);
                }
                inode.touch();
            }
        }
        Ok(())
    }

    /// The parts of `blocks` blocks from `start` that are mapped and written, from `start` on.
    fn written(
        &self,
        number: InodeNumber,
        kind: ForkKind,
        start: FileBlock,
        blocks: u64,
    ) -> Result<Vec<(u64, u64)>, Error> {
        let extents = bmap::extents(self.trans.volume(), &self.inodes[&number], kind)?;
        let end = FileBlock(start.0 + blocks);
        let inside = extents
            .as_slice()
            .iter()
            .filter(|extent| !extent.unwritten && extent.offset < end && extent.end() > start);
        let part = |extent: &Extent| {
            (extent.offset.max(start).0 - start.0, extent.end().min(end).0 - start.0)
        };
        Ok(inside.map(part).collect())
    }
}
