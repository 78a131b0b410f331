//! The content of a block behind its header: the verifier of each kind.

use super::directory::block::verify_block;
use super::directory::data::verify_data;
use super::directory::free::verify_free;
use super::directory::layout::DirLayout;
use super::directory::leaf::{verify_leaf_n, verify_leaf1};
use super::hash_tree::block::{DaLayout, verify_node};
use super::{BufferKind, verify_attr_leaf, verify_attr_remote};
use crate::geometry::Geometry;
use crate::verify_symlink;

/// Checks the structure of a block. Group headers are checked where they are decoded, since the
/// checks need the number of their group; trees and inodes by their own modules.
///
/// # Errors
/// The field that is wrong.
pub fn verify_content_of(
    kind: BufferKind,
    bytes: &[u8],
    geometry: &Geometry,
) -> Result<(), String> {
    let directory = || DirLayout::new(geometry);
    match kind {
        BufferKind::DirBlock => verify_block(bytes, directory(), geometry),
        BufferKind::DirData => verify_data(bytes, directory(), geometry),
        BufferKind::DirFree => verify_free(bytes, directory()),
        BufferKind::DirLeaf1 => verify_leaf1(bytes, directory()),
        BufferKind::DirLeafN => verify_leaf_n(bytes, directory()),
        BufferKind::DaNode => {
            // Nodes of directories are directory blocks, those of attributes one block.
            let blocks = (bytes.len() >> geometry.block_log) as u32;
            verify_node(bytes, DaLayout::new(geometry, blocks))
        }
        BufferKind::AttrLeaf => verify_attr_leaf(bytes, geometry),
        BufferKind::AttrRemote => verify_attr_remote(bytes, geometry),
        BufferKind::Symlink => verify_symlink(bytes, geometry),
        BufferKind::DaAny => Err("the kind of the block was not found out".into()),
        BufferKind::Superblock
        | BufferKind::Agf
        | BufferKind::Agi
        | BufferKind::Agfl
        | BufferKind::Tree(_)
        | BufferKind::InodeCluster => Ok(()),
    }
}
