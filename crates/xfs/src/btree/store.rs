//! Where a tree lives: the engine's view of groups, forks and transactions.

use super::kind::BtreeKind;
use crate::cache::{BufferRef, EditGuard};
use crate::error::TreeCorruption;
use crate::format::{BmapRoot, TreeGeometry};
use undercroft_block::Sector;

/// Pointer to a block of the tree in a store.
pub(super) type PointerOf<S> = <<S as ReadTree>::Kind as BtreeKind>::Pointer;
/// Where the root of a tree is.
#[derive(Clone, Copy, Debug)]
pub enum Root<'a, P> {
    /// In a block of its own, as the header of the group says.
    Block {
        /// The block.
        pointer: P,
        /// Levels of the tree, at least 1.
        height: u8,
    },
    /// In the fork of an inode; mapping trees only.
    Inline(&'a BmapRoot),
}

/// A new root, of the same variety as the old one.
#[derive(Clone, Debug)]
pub enum NewRoot<P> {
    /// The root block and the number of levels changed.
    Block {
        /// The block.
        pointer: P,
        /// Levels of the tree, at least 1.
        height: u8,
    },
    /// The root in the fork changed.
    Inline(BmapRoot),
}

/// A tree that can be read.
///
/// Buffers handed out must stay valid while the lock that guards the tree (group or inode) is
/// held: two reads of the same block give the same buffer.
pub trait ReadTree {
    /// Which tree.
    type Kind: BtreeKind;
    /// Error of reads and changes; a corrupt tree is one of its cases.
    type Error: From<TreeCorruption>;

    /// Shape of the blocks.
    fn geometry(&self) -> &TreeGeometry;

    /// Owner as in the headers of v5 blocks: number of the group or of the inode.
    fn owner(&self) -> u64;

    /// Where the root is now.
    fn root(&self) -> Root<'_, PointerOf<Self>>;

    /// Whether a block of a tree may be at `pointer`: inside the group or volume, behind the
    /// headers of the group.
    fn contains(&self, pointer: PointerOf<Self>) -> bool;

    /// Address of the block at `pointer`; asked only where [`contains`](Self::contains) holds.
    fn sector_of(&self, pointer: PointerOf<Self>) -> Sector;

    /// The block at `pointer`, which should be at `level`; asked only where
    /// [`contains`](Self::contains) holds.
    ///
    /// # Errors
    /// The block cannot be read or fails its verifier.
    fn read(&mut self, pointer: PointerOf<Self>, level: usize) -> Result<BufferRef, Self::Error>;

    /// Begins to read the blocks at these pointers, which come in the order of the tree; those that
    /// [`contains`](Self::contains) refuses are left out. A store need not do anything.
    fn prefetch(&self, _pointers: &[PointerOf<Self>]) {}

    /// The block at `pointer` if the store [remembers](Self::remember) it: what `read` would give,
    /// and verified as a block of this tree at `level`. A store need not remember anything.
    fn recent(&self, _pointer: PointerOf<Self>, _level: usize) -> Option<BufferRef> {
        None
    }

    /// Told of each block that was read and verified as one of this tree at `level`.
    fn remember(&mut self, _pointer: PointerOf<Self>, _level: usize, _buffer: &BufferRef) {}
}

/// A tree that can be changed, as part of a transaction.
pub trait WriteTree: ReadTree {
    /// Identifier of the volume as in the headers of v5 blocks.
    fn uuid(&self) -> [u8; 16];

    /// Opens a block of the tree for change and joins it to the transaction.
    fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b>;

    /// Takes a block for the tree, near `hint`, an existing block of it: zeroed, joined to the
    /// transaction, of the buffer kind of the tree. `None` if there is no space. Must not change
    /// this tree.
    ///
    /// # Errors
    /// Finding a block failed for another reason than space.
    fn allocate(
        &mut self,
        hint: PointerOf<Self>,
    ) -> Result<Option<(PointerOf<Self>, BufferRef)>, Self::Error>;

    /// Gives a block back that is no longer part of the tree. Must not change this tree.
    ///
    /// # Errors
    /// The block cannot be given back.
    fn free(&mut self, pointer: PointerOf<Self>, buffer: BufferRef) -> Result<(), Self::Error>;

    /// Records the new root. It is of the variety that [`root`](ReadTree::root) gave.
    ///
    /// # Errors
    /// The place of the root cannot be changed.
    fn set_root(&mut self, root: NewRoot<PointerOf<Self>>) -> Result<(), Self::Error>;
}
