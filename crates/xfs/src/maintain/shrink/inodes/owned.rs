//! Blocks of an inode that say whose they are.

use crate::bmap::{self, ForkReader};
use crate::cache::BufferRef;
use crate::da::DaFork;
use crate::error::Error;
use crate::format::{BufferKind, Extent, FileType, Header};
use crate::inode::{ForkKind, InodeState};
use crate::maintain::shrink::file_block;
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock, InodeNumber};
use crate::volume::Volume;

/// The forks of an inode.
const FORKS: [ForkKind; 2] = [ForkKind::Data, ForkKind::Attr];

/// Blocks that name their inode, read and verified.
pub(super) struct Owned {
    /// Those of the mapping trees of both forks.
    trees: [Vec<FsBlock>; 2],
    /// Buffers of directories, symbolic links and attributes.
    buffers: Vec<BufferRef>,
    /// Blocks of values of attributes, which are not logged.
    pub(super) values: Vec<Extent>,
}

impl Owned {
    /// Those of an inode, all of whose extents are in memory from then on.
    ///
    /// # Errors
    /// One is damaged, or belongs to another inode; the device failed.
    pub(super) fn of(volume: &Volume, inode: &InodeState) -> Result<Self, Error> {
        let tree = |kind| -> Result<_, Error> {
            bmap::extents(volume, inode, kind)?;
            bmap::tree_block_list(volume, inode, kind)
        };
        let trees = [tree(FORKS[0])?, tree(FORKS[1])?];
        let mut owned = Self { trees, buffers: Vec::new(), values: Vec::new() };
        match inode.file_type() {
            FileType::Directory => owned.add_directory(volume, inode)?,
            FileType::Symlink => owned.add_symlink(volume, inode)?,
            _ => {}
        }
        owned.add_attributes(volume, inode)?;
        Ok(owned)
    }

    /// Number of blocks and buffers that the journal gets a piece of.
    pub(super) fn logged(&self) -> usize {
        self.buffers.len() + self.trees.iter().map(Vec::len).sum::<usize>()
    }

    fn add_directory(&mut self, volume: &Volume, inode: &InodeState) -> Result<(), Error> {
        let mut fork = ForkReader::new(volume, inode, ForkKind::Data);
        let geometry = volume.geometry();
        let unit = FileBlock(geometry.dir_block_blocks().into());
        let is_block_form = fork.end()? == unit;
        let mut at = FileBlock(0);
        while let Some(block) = fork.next_mapped(at)? {
            let kind = if is_block_form {
                BufferKind::DirBlock
            } else if block < geometry.dir_leaf_block() {
                BufferKind::DirData
            } else if block < geometry.dir_free_block() {
                BufferKind::DaAny
            } else {
                BufferKind::DirFree
            };
            self.add(&mut fork, block, kind)?;
            at = FileBlock(block.0.saturating_add(unit.0));
        }
        Ok(())
    }

    fn add_symlink(&mut self, volume: &Volume, inode: &InodeState) -> Result<(), Error> {
        let mut fork = ForkReader::new(volume, inode, ForkKind::Data);
        for extent in bmap::extents(volume, inode, ForkKind::Data)?.as_slice() {
            self.add(&mut fork, extent.offset, BufferKind::Symlink)?;
        }
        Ok(())
    }

    fn add_attributes(&mut self, volume: &Volume, inode: &InodeState) -> Result<(), Error> {
        let mut fork = ForkReader::new(volume, inode, ForkKind::Attr);
        for extent in bmap::extents(volume, inode, ForkKind::Attr)?.as_slice() {
            for index in 0..extent.len {
                let offset = FileBlock(extent.offset.0 + u64::from(index));
                let start = FsBlock(extent.start.0 + u64::from(index));
                if file_block::is_value(volume, start)? {
                    self.values.push(Extent { offset, start, len: 1, unwritten: false });
                } else {
                    self.add(&mut fork, offset, BufferKind::DaAny)?;
                }
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        fork: &mut ForkReader<'_>,
        block: FileBlock,
        kind: BufferKind,
    ) -> Result<(), Error> {
        let Some(buffer) = fork.read(block, kind)? else {
            return Err(fork.corrupt(block, "it is mapped, and is a hole".into()));
        };
        if buffer.address().parts().len() > 1 {
            return Err(Error::NotUsable(format!(
                "a block of directory {} lies in pieces, which cannot be moved",
                fork.inode()
            )));
        }
        self.buffers.push(buffer);
        Ok(())
    }

    /// Makes the inode the owner of what the inode `from` had, but for values of attributes.
    ///
    /// # Errors
    /// A tree of a group is damaged, or the device failed.
    pub(super) fn transfer(
        &self,
        trans: &mut Transaction<'_>,
        inode: &InodeState,
        from: InodeNumber,
    ) -> Result<(), Error> {
        for (kind, tree) in FORKS.into_iter().zip(&self.trees) {
            bmap::transfer(trans, inode, kind, (from, tree))?;
        }
        for buffer in &self.buffers {
            let mut guard = trans.edit(buffer);
            let header = Header::of(guard.0.kind);
            if let Some(offset) = header.and_then(|header| header.inode_owner_offset()) {
                guard.edit().put_be64(offset, inode.number.0);
            }
        }
        Ok(())
    }
}
