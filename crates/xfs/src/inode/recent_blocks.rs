//! The blocks of a large directory that were used last.
//!
//! Each new name needs the root of the hash tree, a leaf, the index of free space and a data block. All
//! but the leaf are most often those of the name before. Where they lie is not looked up again as long
//! as the mapping of the directory does not change.

use crate::cache::{BufferRef, LastUsed};
use crate::format::BufferKind;
use crate::geometry::Geometry;
use crate::units::FileBlock;

/// A block of the data, the root of the hash tree, a block of the free index.
#[derive(Debug, Default)]
struct Slots {
    data: LastUsed<FileBlock>,
    root: LastUsed<FileBlock>,
    free: LastUsed<FileBlock>,
}

/// The last blocks of one directory; nothing before it has a hash block.
#[derive(Debug, Default)]
pub(crate) struct RecentBlocks(Option<Box<Slots>>);

impl RecentBlocks {
    /// The buffer of `kind` at `block`, if it was the last one of its part of the directory.
    #[inline]
    pub(crate) fn find(
        &self,
        geometry: &Geometry,
        block: FileBlock,
        kind: BufferKind,
    ) -> Option<BufferRef> {
        let slots = self.0.as_ref()?;
        let slot = if block < geometry.dir_leaf_block() {
            &slots.data
        } else if block < geometry.dir_free_block() {
            &slots.root
        } else {
            &slots.free
        };
        slot.find(block, kind)
    }

    /// Remembers a buffer that was read and verified.
    pub(crate) fn remember(&mut self, geometry: &Geometry, block: FileBlock, buffer: &BufferRef) {
        let root = geometry.dir_leaf_block();
        if block == root {
            self.0.get_or_insert_default().root.remember(block, buffer);
        } else if let Some(slots) = &mut self.0 {
            if block < root {
                slots.data.remember(block, buffer);
            } else if block >= geometry.dir_free_block() {
                slots.free.remember(block, buffer);
            }
        }
    }

    /// The mapping of the directory is about to change.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{BufferAddress, MetaBuffer};
    use crate::mkfs::{self, MkfsOptions};
    use std::sync::Arc;
    use undercroft_block::Sector;
    use uuid::Uuid;

    fn buffer(kind: BufferKind) -> BufferRef {
        MetaBuffer::new(BufferAddress::contiguous(Sector(8), 8), kind, vec![0; 4096])
    }

    #[test]
    fn the_last_block_of_each_part_is_found_until_the_mapping_changes() {
        let options = MkfsOptions::new(300 << 20, Uuid::from_u128(24));
        let geometry = mkfs::plan(&options).unwrap().geometry();
        let (root, free) = (geometry.dir_leaf_block(), geometry.dir_free_block());
        let (data, leaf) = (FileBlock(7), FileBlock(root.0 + 1));
        let parts = [
            (root, BufferKind::DaNode, BufferKind::DaAny),
            (data, BufferKind::DirData, BufferKind::DirData),
            (free, BufferKind::DirFree, BufferKind::DirFree),
        ];
        let buffers = parts.map(|(_, kind, _)| buffer(kind));
        let mut recent = RecentBlocks::default();
        recent.remember(&geometry, data, &buffers[1]);
        let find = |recent: &RecentBlocks, block, kind| recent.find(&geometry, block, kind);
        assert!(find(&recent, data, BufferKind::DirData).is_none(), "it has no hash block");
        for ((block, ..), buffer) in parts.iter().zip(&buffers) {
            recent.remember(&geometry, *block, buffer);
        }
        recent.remember(&geometry, leaf, &buffer(BufferKind::DirLeafN));
        assert!(find(&recent, leaf, BufferKind::DaAny).is_none(), "leaves are not remembered");
        for ((block, _, wanted), buffer) in parts.iter().zip(&buffers) {
            let found = find(&recent, *block, *wanted).unwrap();
            assert!(Arc::ptr_eq(&found, buffer), "{block}");
            assert!(find(&recent, FileBlock(block.0 + 1), *wanted).is_none(), "beside {block}");
            assert!(find(&recent, *block, BufferKind::DirBlock).is_none(), "another kind");
        }
        buffers[1].content().retired = true;
        assert!(find(&recent, data, BufferKind::DirData).is_none(), "its block was freed");
        recent.forget();
        assert!(find(&recent, root, BufferKind::DaAny).is_none());
    }
}
