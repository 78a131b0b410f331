//! Data of files moved, and blocks that several files share moved as shared.

use super::destination::{self, Wanted};
use super::size::Size;
use crate::bmap;
use crate::error::Error;
use crate::file::when_free;
use crate::format::{Extent, InodeFlags2, RmapFlags, RmapRecord};
use crate::inode::ForkKind;
use crate::units::{AgNumber, FileBlock, FsBlock, InodeNumber};
use crate::volume::Volume;
use std::collections::BTreeMap;
use std::sync::Arc;
use undercroft_block::{Batch, Bio, Buffer, Plug, Segment};

/// Data on its way to its new places.
pub(super) struct FileData<'v> {
    volume: &'v Volume,
    size: Size,
    plug: Plug,
    writes: Batch,
    /// New places of blocks that have further owners, by the old ones: lengths and new places. Those
    /// in front of the owner at hand have no more owners there.
    shared: BTreeMap<u64, (u32, FsBlock)>,
    /// The group at hand.
    group: Option<AgNumber>,
}

impl<'v> FileData<'v> {
    pub(super) fn new(volume: &'v Volume, size: Size) -> Self {
        let plug = Plug::new(volume.cache().device());
        Self { volume, size, plug, writes: Batch::new(), shared: BTreeMap::new(), group: None }
    }

    /// Goes on with a group, which may be another one.
    pub(super) fn enter_group(&mut self, ag: AgNumber) {
        if self.group != Some(ag) {
            self.shared.clear();
        }
        self.group = Some(ag);
    }

    /// Sends what is held back.
    pub(super) fn flush(&self) {
        self.plug.flush();
    }

    /// Moves the data of a mapping, whose blocks begin at `start` and hold `copy`.
    pub(super) fn move_extent(
        &mut self,
        number: InodeNumber,
        start: FsBlock,
        record: &RmapRecord,
        copy: Option<&Arc<Buffer>>,
    ) -> Result<(), Error> {
        self.shared.retain(|old, (len, _)| *old + u64::from(*len) > start.0);
        let unwritten = record.flags.contains(RmapFlags::UNWRITTEN);
        let whole = Extent { offset: record.offset, start, len: record.len, unwritten };
        let mut done = 0;
        while done < whole.len {
            let by = u64::from(done);
            let rest = Extent {
                offset: FileBlock(whole.offset.0 + by),
                start: FsBlock(whole.start.0 + by),
                len: whole.len - done,
                unwritten,
            };
            let copy = copy.map(|copy| (copy, done));
            done += when_free(self.volume, || self.step(number, rest, copy))?;
        }
        Ok(())
    }

    /// Moves the front of an extent in one transaction; returns the number of blocks.
    fn step(
        &mut self,
        number: InodeNumber,
        old: Extent,
        copy: Option<(&Arc<Buffer>, u32)>,
    ) -> Result<u32, Error> {
        let (volume, kind) = (self.volume, ForkKind::Data);
        let mut trans = volume.begin()?;
        let mut inode = volume.lock_inode(number)?;
        let (old, place) = self.shared_place(old);
        bmap::prepare(&mut trans, &inode, kind, &[old.start], &[old.offset, old.end()], 2)?;
        let mut old = bmap::bounded(&mut trans, &inode, kind, old)?;
        inode.touch();
        if let Some(start) = place {
            let new = bmap::bounded(&mut trans, &inode, kind, Extent { start, ..old })?;
            old.len = new.len;
            bmap::replace_shared(&mut trans, &mut inode, Some(old), new)?;
        } else {
            let wanted = Wanted { kind, min_len: 1, unlogged: true };
            let new = match destination::find(&mut trans, &inode, self.size, &old, wanted) {
                Err(error @ Error::Busy(_)) => {
                    // Free lists may have changed.
                    trans.commit(&mut [&mut inode])?;
                    return Err(error);
                }
                found => found?,
            };
            old.len = new.len;
            if let Some((copy, first)) = copy {
                self.send(&new, copy, first);
                trans.add_data(&self.writes);
            }
            bmap::replace(&mut trans, &mut inode, old, new)?;
            if inode.core.flags2.contains(InodeFlags2::REFLINK) {
                self.shared.insert(old.start.0, (new.len, new.start));
            }
        }
        trans.commit(&mut [&mut inode])?;
        Ok(old.len)
    }

    /// The front of an extent that goes to one place, and the place if another owner went there.
    fn shared_place(&self, old: Extent) -> (Extent, Option<FsBlock>) {
        let at = old.start.0;
        if let Some((first, (len, new))) = self.shared.range(..=at).next_back()
            && first + u64::from(*len) > at
        {
            let by = at - first;
            let len = old.len.min(*len - by as u32);
            return (Extent { len, ..old }, Some(FsBlock(new.0 + by)));
        }
        let next = self.shared.range(at..).next().map_or(u64::MAX, |(first, _)| first - at);
        let len = u32::try_from(next).map_or(old.len, |next| old.len.min(next));
        (Extent { len, ..old }, None)
    }

    /// Writes blocks of a copy, from its block `first` on, to their new place.
    fn send(&self, new: &Extent, copy: &Arc<Buffer>, first: u32) {
        let geometry = self.volume.geometry();
        let byte = |block: u32| (block as usize) << geometry.block_log;
        let segment = Segment::new(copy, byte(first)..byte(first + new.len));
        let bio = Bio::write(geometry.sector(new.start), segment);
        self.plug.submit(bio.in_batch(&self.writes));
    }
}
