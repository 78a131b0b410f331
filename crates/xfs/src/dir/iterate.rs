//! Listing a directory in the order of its data, from any position.
//!
//! Positions are those of block form in every form, so that a listing that is interrupted goes on
//! at the same place even if the directory changes its form in between: names that stay are
//! listed once, none is left out.

use super::form::{Form, form, read};
use super::shortform::{directory_type, open};
use crate::da::DaFork;
use crate::error::Error;
use crate::format::dir_block;
use crate::format::dir_data::{self, DataEntry, Item};
use crate::format::dir_layout::{DATA_ALIGN, DirLayout};
use crate::format::dir_shortform::ShortEntry;
use crate::format::{BufferKind, EntryType};
use crate::units::{FileBlock, InodeNumber};

/// Blocks of a directory that are read together.
const BLOCKS_AHEAD: usize = 32;

/// A place in a directory: an offset in its data space, in units of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// Before the first entry.
    pub const START: Self = Self(0);

    /// Behind the last entry that any directory can have.
    pub const END: Self = Self((1 << 35) / DATA_ALIGN as u64);

    /// The number, to be handed out as a cookie: at most 2^32.
    #[must_use]
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// The position of a cookie; any number is one.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        if raw > Self::END.0 { Self::END } else { Self(raw) }
    }

    const fn from_offset(offset: u64) -> Self {
        Self(offset / DATA_ALIGN as u64)
    }
}

/// One entry of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Name; "." and ".." are listed as well.
    pub name: &'a [u8],
    /// Inode.
    pub inode: InodeNumber,
    /// Type, [`EntryType::Unknown`] on volumes that do not record it.
    pub ftype: EntryType,
    /// Where a listing that begins behind this entry starts.
    pub next: Position,
}

/// Calls `visit` for the entries at and behind `from` until it returns `false` or there are no
/// more, and returns where to go on: behind the entry that `visit` answered with `false`, or
/// [`Position::END`]. A caller that could not take that entry goes on at the `next` of the one
/// before. One block is locked for reading while `visit` runs.
///
/// # Errors
/// A damaged directory; the entries before the damage were visited.
pub fn iterate<F: DaFork + ?Sized>(
    fork: &mut F,
    from: Position,
    mut visit: impl FnMut(DirectoryEntry<'_>) -> bool,
) -> Result<Position, Error> {
    let layout = DirLayout::new(fork.geometry());
    let mut cursor = Cursor { layout, from, visit: &mut visit };
    match form(fork, layout)? {
        Form::Short => cursor.short(fork),
        Form::Block => {
            let stopped = cursor.block(fork, 0, BufferKind::DirBlock)?;
            Ok(stopped.unwrap_or(Position::END))
        }
        Form::Leaf | Form::Node => cursor.blocks(fork),
    }
}

struct Cursor<'v> {
    layout: DirLayout,
    from: Position,
    visit: &'v mut dyn FnMut(DirectoryEntry<'_>) -> bool,
}

impl Cursor<'_> {
    /// Visits the entry at `offset` of the data space if it is not before the start. `Some` if
    /// that was enough.
    fn offer(&mut self, offset: u64, entry: &DataEntry<'_>) -> Option<Position> {
        if Position::from_offset(offset) < self.from {
            return None;
        }
        let size = self.layout.entry_size(entry.name.len()) as u64;
        let next = Position::from_offset(offset + size);
        let DataEntry { inode, name, ftype } = *entry;
        let more = (self.visit)(DirectoryEntry { name, inode, ftype, next });
        (!more).then_some(next)
    }

    fn short<F: DaFork + ?Sized>(&mut self, fork: &F) -> Result<Position, Error> {
        let layout = self.layout;
        let short = open(fork, layout)?;
        let ftype = directory_type(layout);
        let dot = DataEntry { inode: fork.inode(), name: b".", ftype };
        let dotdot = DataEntry { inode: short.parent(), name: b"..", ftype };
        let start = layout.data_start();
        for (offset, entry) in [(start, dot), (start + layout.entry_size(1), dotdot)] {
            if let Some(stopped) = self.offer(offset as u64, &entry) {
                return Ok(stopped);
            }
        }
        let mut end = layout.first_name_offset();
        for found in short.entries() {
            let ShortEntry { offset, entry } = found.map_err(|w| fork.corrupt(FileBlock(0), w))?;
            // A listing in pieces ends only if positions ascend.
            if usize::from(offset) < end || !usize::from(offset).is_multiple_of(DATA_ALIGN) {
                let what = format!("saved offset {offset} is below {end} or not aligned");
                return Err(fork.corrupt(FileBlock(0), what));
            }
            end = usize::from(offset) + layout.entry_size(entry.name.len());
            if let Some(stopped) = self.offer(offset.into(), &entry) {
                return Ok(stopped);
            }
        }
        Ok(Position::END)
    }

    fn blocks<F: DaFork + ?Sized>(&mut self, fork: &mut F) -> Result<Position, Error> {
        let layout = self.layout;
        let end = fork.geometry().dir_leaf_block();
        let mut next = ((self.from.0 * DATA_ALIGN as u64) >> layout.block_log) as u32;
        let mut ahead = FileBlock(0);
        while let Some(mapped) = fork.next_mapped(layout.data_file_block(next))? {
            if mapped >= end {
                break;
            }
            if mapped >= ahead {
                ahead = fork.prefetch(mapped, BLOCKS_AHEAD);
            }
            let data_block = layout.data_block(mapped);
            if let Some(stopped) = self.block(fork, data_block, BufferKind::DirData)? {
                return Ok(stopped);
            }
            next = data_block + 1;
        }
        Ok(Position::END)
    }

    fn block<F: DaFork + ?Sized>(
        &mut self,
        fork: &mut F,
        data_block: u32,
        kind: BufferKind,
    ) -> Result<Option<Position>, Error> {
        let layout = self.layout;
        let place = layout.data_file_block(data_block);
        let buffer = read(fork, place, kind)?;
        let bytes = buffer.read();
        let end =
            if kind == BufferKind::DirBlock { dir_block::table(&bytes).base } else { bytes.len() };
        let start = u64::from(data_block) << layout.block_log;
        for found in dir_data::items(&bytes, layout, end) {
            let (offset, item) = found.map_err(|what| fork.corrupt(place, what))?;
            if let Item::Used(entry) = item
                && let Some(stopped) = self.offer(start + offset as u64, &entry)
            {
                return Ok(Some(stopped));
            }
        }
        Ok(None)
    }
}
