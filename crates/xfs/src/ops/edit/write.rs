//! Writing at any place of a file.

use super::data::{Old, Source};
use super::{FileEdit, Step, give_up};
use crate::ag;
use crate::bmap;
use crate::error::Error;
use crate::format::{Extent, InodeFlags2};
use crate::inode::ForkKind;
use crate::ops::write::MAX_FILE_SIZE;
use crate::units::FileBlock;
use std::ops::Range;
use std::sync::Arc;

/// Most zeros of one write.
const ZEROES_MAX: u64 = 4 << 20;

/// What the blocks at a place of a file are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Not mapped, up to this block.
    Hole(FileBlock),
    /// Mapped and never written.
    Unwritten(Extent),
    /// Written, and nobody else's.
    Own(Extent),
    /// Written, and another file's as well.
    Shared(Extent),
}

impl FileEdit<'_> {
    /// Writes the bytes of `memory` in `range` at `offset`. The file grows if it ends before.
    ///
    /// # Errors
    /// The file would be larger than the format allows; no space; a damaged structure; the device
    /// failed.
    pub fn write(
        &mut self,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
    ) -> Result<(), Error> {
        if range.is_empty() {
            return Ok(());
        }
        let end = self.check_end(offset, range.len() as u64)?;
        self.start();
        self.zero_behind_end(offset)?;
        self.put(offset..end, Source::Memory { memory, first: range.start, offset })?;
        self.finish(end)
    }

    /// The byte `len` behind `offset`, where the file may end.
    pub(super) fn check_end(&self, offset: u64, len: u64) -> Result<u64, Error> {
        let end = offset.checked_add(len).filter(|end| *end <= MAX_FILE_SIZE);
        end.ok_or_else(|| {
            let number = self.number;
            Error::Invalid(format!(
                "inode {number}: {len} bytes at {offset}: the limit of a file is 2^63 - 1"
            ))
        })
    }

    /// Zeroes what is stored between the end of the file and `offset`: it becomes visible when the
    /// file grows beyond it.
    pub(super) fn zero_behind_end(&mut self, offset: u64) -> Result<(), Error> {
        let size = self.size();
        if size < offset { self.put(size..offset, Source::Zeroes) } else { Ok(()) }
    }

    /// Writes a range piece by piece.
    pub(super) fn put(&mut self, bytes: Range<u64>, source: Source<'_>) -> Result<(), Error> {
        let mut done = Ok(bytes.start);
        while let Ok(at) = done
            && at < bytes.end
        {
            let end = match source {
                Source::Zeroes => bytes.end.min(at + ZEROES_MAX),
                Source::Memory { .. } | Source::Run(_) => bytes.end,
            };
            done = self.put_piece(at..end, source);
        }
        // Also of what an error ended: blocks may have been overwritten.
        self.settle()?;
        done.map(drop)
    }

    /// Writes the front of a range, as far as the file is the same there; returns where that ends.
    fn put_piece(&mut self, bytes: Range<u64>, source: Source<'_>) -> Result<u64, Error> {
        let blocks = self.blocks_over(&bytes);
        let zeroes = matches!(source, Source::Zeroes);
        let done = match self.place(blocks.clone())? {
            Place::Hole(end) if zeroes => end,
            Place::Unwritten(extent) if zeroes => extent.end(),
            Place::Hole(end) => self.retry(|edit| edit.fill(&bytes, blocks.start..end, source))?,
            Place::Unwritten(extent) => self.write_first(&bytes, extent, source)?,
            Place::Own(extent) => {
                let bytes = self.within(&bytes, &extent);
                let old = Old { extent: &extent, size: self.size() };
                self.send(&extent, bytes, source, self.geometry().sector_size(), Some(old))?;
                extent.end()
            }
            Place::Shared(extent) => {
                self.retry(|edit| edit.copy_on_write(&bytes, extent, source))?
            }
        };
        Ok(self.byte(done).min(bytes.end))
    }

    /// What the front of a range of blocks is.
    pub(super) fn place(&self, blocks: Range<FileBlock>) -> Result<Place, Error> {
        let Some(extent) = self.extents()?.first_in(blocks.start, blocks.end) else {
            return Ok(Place::Hole(blocks.end));
        };
        if extent.offset > blocks.start {
            return Ok(Place::Hole(extent.offset));
        }
        if extent.unwritten {
            return Ok(Place::Unwritten(extent));
        }
        if !self.inode.read().core.flags2.contains(InodeFlags2::REFLINK) {
            return Ok(Place::Own(extent));
        }
        let (group, start) = self.geometry().split_block(extent.start);
        Ok(match ag::first_shared(self.volume, group, start, extent.len)? {
            None => Place::Own(extent),
            Some(shared) if shared.start == start => {
                Place::Shared(Extent { len: shared.len, ..extent })
            }
            Some(shared) => Place::Own(Extent { len: shared.start.0 - start.0, ..extent }),
        })
    }

    /// The part of a range of bytes that an extent holds.
    fn within(&self, bytes: &Range<u64>, extent: &Extent) -> Range<u64> {
        bytes.start.max(self.byte(extent.offset))..bytes.end.min(self.byte(extent.end()))
    }

    /// Writes into a hole: to new blocks, which are then mapped.
    fn fill(
        &mut self,
        bytes: &Range<u64>,
        hole: Range<FileBlock>,
        source: Source<'_>,
    ) -> Result<FileBlock, Error> {
        let kind = ForkKind::Data;
        let mut step = self.begin()?;
        self.adopt_margin(&mut step, source);
        bmap::prepare(&mut step.trans, &step.inode, kind, &[], &[hole.start, hole.end], 1)?;
        let len = hole.end.0 - hole.start.0;
        let (mut step, extent) = self.take_space(step, hole.start, len, source)?;
        let bytes = self.within(bytes, &extent);
        self.send(&extent, bytes.clone(), source, self.geometry().block_size(), None)?;
        self.before(&mut step)?;
        bmap::add(&mut step.trans, &mut step.inode, kind, extent)?;
        self.commit_data(step, bytes.end, source)?;
        Ok(extent.end())
    }

    /// Writes to blocks that were preallocated: nobody sees what is in them until they count as
    /// written.
    fn write_first(
        &mut self,
        bytes: &Range<u64>,
        extent: Extent,
        source: Source<'_>,
    ) -> Result<FileBlock, Error> {
        let bytes = self.within(bytes, &extent);
        self.send(&extent, bytes.clone(), source, self.geometry().block_size(), None)?;
        let mut step = self.begin()?;
        self.adopt_margin(&mut step, source);
        self.before(&mut step)?;
        let (starts, places) = ([extent.start], [extent.offset, extent.end()]);
        bmap::prepare(&mut step.trans, &step.inode, ForkKind::Data, &starts, &places, 2)?;
        bmap::convert(&mut step.trans, &mut step.inode, extent)?;
        self.commit_data(step, bytes.end, source)?;
        Ok(extent.end())
    }

    /// Writes to new blocks, with what the shared ones hold around the write, and maps them in
    /// their place.
    fn copy_on_write(
        &mut self,
        bytes: &Range<u64>,
        old: Extent,
        source: Source<'_>,
    ) -> Result<FileBlock, Error> {
        let (kind, mut step) = (ForkKind::Data, self.begin()?);
        self.adopt_margin(&mut step, source);
        let (starts, places) = ([old.start], [old.offset, old.end()]);
        bmap::prepare(&mut step.trans, &step.inode, kind, &starts, &places, 2)?;
        let old = bmap::bounded(&mut step.trans, &step.inode, kind, old)?;
        let (mut step, new) = self.take_space(step, old.offset, old.len.into(), source)?;
        let old = Extent { len: new.len, ..old };
        let bytes = self.within(bytes, &new);
        let before = Old { extent: &old, size: step.inode.core.size };
        self.send(&new, bytes.clone(), source, self.geometry().block_size(), Some(before))?;
        self.before(&mut step)?;
        bmap::replace(&mut step.trans, &mut step.inode, old, new)?;
        self.commit_data(step, bytes.end, source)?;
        Ok(new.end())
    }

    /// Commits a step that made data visible up to the byte `end`.
    fn commit_data(
        &mut self,
        mut step: Step<'_>,
        end: u64,
        source: Source<'_>,
    ) -> Result<(), Error> {
        let core = &mut step.inode.core;
        match source {
            Source::Memory { .. } => core.size = core.size.max(end),
            Source::Run(_) => step.inode.grow_stored_size(end),
            Source::Zeroes => {}
        }
        self.commit(step)
    }

    /// Takes over what was set aside for the map of the file when its data became dirty.
    fn adopt_margin(&self, step: &mut Step<'_>, source: Source<'_>) {
        if matches!(source, Source::Run(_)) {
            let margin = u64::from(self.volume.heights().bmap_data);
            step.trans.adopt(step.inode.take_reserved(margin));
        }
    }

    /// Takes space for up to `len` blocks at `offset`; nothing of the file is changed by that. Space
    /// for dirty data was set aside.
    pub(super) fn take_space<'t>(
        &self,
        mut step: Step<'t>,
        offset: FileBlock,
        len: u64,
        source: Source<'_>,
    ) -> Result<(Step<'t>, Extent), Error> {
        let is_ours = matches!(source, Source::Run(_)) && step.inode.reserved_ahead() >= len;
        // As much as there is; the next step finds that there is no more.
        let len = if is_ours { len } else { len.min(self.volume.available_blocks().max(1)) };
        if !is_ours {
            step.trans.reserve(len)?;
        }
        let Step { trans, inode } = &mut step;
        match bmap::find_space(trans, inode, ForkKind::Data, (offset, len), None) {
            Ok(extent) => {
                if is_ours {
                    trans.adopt(inode.take_reserved(extent.len.into()));
                    trans.claim(extent.len.into())?;
                }
                Ok((step, extent))
            }
            Err(error) => Err(give_up(step, error)),
        }
    }
}
