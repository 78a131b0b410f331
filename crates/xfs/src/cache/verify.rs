//! Verification of a buffer by its kind: after a read, and before a write.
//!
//! The header that describes the block (checksum, magic, volume, address) is the same for all
//! kinds; what lies behind it is checked by the verifier of the structure.

use crate::bytes::be16;
use crate::format::da_block::resolve_magic;
use crate::format::verify_tree_block;
use crate::format::{
    BufferKind, Header, HeaderLayout, INODE_MAGIC, stamp_inode_crc, verify_content_of,
};
use crate::geometry::Geometry;
use crate::units::Lsn;
use undercroft_block::Sector;

/// Checks a buffer that was read; returns its kind, which the magic decides for
/// [`BufferKind::DaAny`]. The error names the defect.
pub(super) fn verify(
    kind: BufferKind,
    bytes: &[u8],
    sector: Sector,
    geometry: &Geometry,
) -> Result<BufferKind, String> {
    if geometry.features.crc
        && let Some(header) = Header::of(kind)
    {
        header.verify(bytes, sector, &geometry.meta_uuid, geometry.block_size())?;
    }
    // On v4 volumes, whose blocks have no header to verify, this is the only look at the magic.
    let kind = resolve_magic(bytes, kind, geometry.features.crc)?;
    verify_content(kind, bytes, geometry)?;
    Ok(kind)
}

/// Checks what a buffer of a known kind holds. The error names the defect.
pub(crate) fn verify_content(
    kind: BufferKind,
    bytes: &[u8],
    geometry: &Geometry,
) -> Result<(), String> {
    match kind {
        BufferKind::Tree(tree) => {
            let layout = HeaderLayout::new(tree, geometry.features.crc);
            verify_tree_block(tree, layout, bytes).map_err(|defect| defect.to_string())
        }
        BufferKind::InodeCluster => verify_cluster(bytes, geometry),
        _ => verify_content_of(kind, bytes, geometry),
    }
}

/// Checks what every inode of a cluster must have, used or free; the rest is checked when an
/// inode is loaded.
fn verify_cluster(bytes: &[u8], geometry: &Geometry) -> Result<(), String> {
    for (index, inode) in bytes.chunks_exact(geometry.inode_size()).enumerate() {
        let (magic, version) = (be16(inode, 0), inode[4]);
        if magic != INODE_MAGIC {
            return Err(format!("inode {index} of the cluster has magic {magic:#06x}"));
        }
        let expected = if geometry.features.crc { 3..=3 } else { 1..=2 };
        if !expected.contains(&version) {
            return Err(format!("inode {index} of the cluster has version {version}"));
        }
    }
    Ok(())
}

/// Stamps sequence number and checksum of a buffer that goes to the device. Inodes carry their
/// numbers already. What did not go through the journal has the number zero.
pub(crate) fn stamp(kind: BufferKind, bytes: &mut [u8], lsn: Lsn, geometry: &Geometry) {
    if !geometry.features.crc {
        return;
    }
    match Header::of(kind) {
        Some(header) => header.stamp(bytes, lsn, geometry.block_size()),
        None => bytes.chunks_exact_mut(geometry.inode_size()).for_each(stamp_inode_crc),
    }
}
