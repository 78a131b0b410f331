//! One allocation group: its headers in memory, its lock, its free list and its trees.
//!
//! The lock of a group guards everything in it: headers, all AG-rooted trees, the free list
//! (design, decision 2). It is the guard of [`GroupState`]; a transaction keeps it to its end.

mod reservation;
pub mod rmap;
mod tree;

pub use reservation::Reserved;
pub use tree::AgTree;

use crate::cache::{BufferAddress, BufferRef};
use crate::error::Error;
use crate::format::{Agf, Agfl, Agi, BufferKind};
use crate::trans::Transaction;
use crate::units::{AgBlock, AgNumber};
use crate::volume::Volume;
use parking_lot::{ArcMutexGuard, RawMutex};

/// The lock of a group, owned.
pub type GroupGuard = ArcMutexGuard<RawMutex, Option<GroupState>>;

/// Headers of one group, decoded.
#[derive(Debug)]
pub struct GroupState {
    /// Which group.
    pub number: AgNumber,
    /// Free-space header.
    pub agf: Agf,
    /// Inode header.
    pub agi: Agi,
    /// Free list.
    pub agfl: Agfl,
    /// Blocks set aside for the growth of trees.
    pub reserved: Reserved,
    buffers: HeaderBuffers,
}

#[derive(Debug)]
struct HeaderBuffers {
    agf: BufferRef,
    agi: BufferRef,
    agfl: BufferRef,
}

impl GroupState {
    /// Reads the headers of a group.
    ///
    /// # Errors
    /// A header is damaged, or the device failed.
    pub(crate) fn load(volume: &Volume, number: AgNumber) -> Result<Self, Error> {
        let geometry = volume.geometry();
        let sectors = (geometry.sector_size() / 512) as u32;
        let read = |index, kind| {
            let sector = geometry.header_sector(number, index);
            volume.cache().read(&BufferAddress::contiguous(sector, sectors), kind)
        };
        let buffers = HeaderBuffers {
            agf: read(1, BufferKind::Agf)?,
            agi: read(2, BufferKind::Agi)?,
            agfl: read(3, BufferKind::Agfl)?,
        };
        let damaged = |structure, index, what| Error::Block {
            structure,
            sector: geometry.header_sector(number, index),
            what,
        };
        let agf = Agf::decode(&buffers.agf.read(), geometry, number)
            .map_err(|what| damaged("AGF", 1, what))?;
        let agi = Agi::decode(&buffers.agi.read(), geometry, number)
            .map_err(|what| damaged("AGI", 2, what))?;
        let agfl = Agfl::decode(&buffers.agfl.read(), geometry, number)
            .map_err(|what| damaged("AGFL", 3, what))?;
        let reserved = Reserved::new(geometry, number);
        Ok(Self { number, agf, agi, agfl, reserved, buffers })
    }

    /// Writes what changed in the headers into their buffers, as part of the transaction.
    pub(crate) fn store(&mut self, trans: &mut Transaction<'_>) {
        let Self { agf, agi, agfl, buffers, .. } = self;
        if agf.differs(&buffers.agf.read()) {
            agf.encode_changes(&mut trans.edit(&buffers.agf).edit());
        }
        if agi.differs(&buffers.agi.read()) {
            agi.encode_changes(&mut trans.edit(&buffers.agi).edit());
        }
        if agfl.differs(&buffers.agfl.read()) {
            agfl.encode_changes(&mut trans.edit(&buffers.agfl).edit());
        }
    }

    /// Takes the oldest block off the free list.
    ///
    /// # Errors
    /// The list is empty although a tree needs a block: the group is full or its headers lie.
    pub fn take_from_list(&mut self) -> Result<AgBlock, Error> {
        self.agfl
            .take(&mut self.agf)
            .ok_or_else(|| self.corrupt("AGFL", AgBlock(0), "the free list is empty"))
    }

    /// Appends a block to the free list.
    ///
    /// # Errors
    /// The list is full: its length in the AGF is wrong.
    pub fn put_on_list(&mut self, block: AgBlock) -> Result<(), Error> {
        if self.agfl.put(&mut self.agf, block) {
            Ok(())
        } else {
            Err(self.corrupt("AGFL", block, "the free list is full"))
        }
    }

    /// An error for damage found in this group.
    #[must_use]
    pub fn corrupt(&self, structure: &'static str, block: AgBlock, what: &str) -> Error {
        Error::Group { structure, group: self.number, block, what: what.to_owned() }
    }
}
