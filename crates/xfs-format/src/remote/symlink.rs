//! Blocks of a symbolic link target that does not fit the inode (docs/format/symlinks.md).
//!
//! A buffer covers one mapped extent; on version 5 volumes each extent has one header.

use super::header::{
    REMOTE_HEADER_SIZE, remote_payload_at, verify_remote_header, write_remote_header,
};
use crate::bytes::EditBytes;
use crate::geometry::Geometry;
use crate::hash_tree::block::BlockIdentity;
use crate::units::Lsn;

/// "XSLM".
pub const SYMLINK_MAGIC: u32 = 0x5853_4c4d;

/// Longest target in bytes.
pub const SYMLINK_MAX: usize = 1023;

/// Bytes of a target that an extent of `extent` bytes holds.
#[must_use]
pub const fn symlink_payload(geometry: &Geometry, extent: usize) -> usize {
    if geometry.features.crc { extent - REMOTE_HEADER_SIZE } else { extent }
}

/// Blocks for a target of at most [`SYMLINK_MAX`] bytes, enough even if no two are neighbours.
#[must_use]
pub const fn symlink_blocks(geometry: &Geometry, target: usize) -> u32 {
    target.div_ceil(symlink_payload(geometry, geometry.block_size())) as u32
}

/// Checks one extent of a target; version 4 extents have nothing to check.
///
/// # Errors
///
/// The field and its defect.
pub fn verify_symlink(bytes: &[u8], geometry: &Geometry) -> Result<(), String> {
    if geometry.features.crc {
        verify_remote_header(bytes, SYMLINK_MAGIC, SYMLINK_MAX)?;
    }
    Ok(())
}

/// The part of a target of `len` bytes that a verified extent holds, from `offset` on.
///
/// # Errors
///
/// The extent belongs to another place, or to a target of another length.
pub fn symlink_part<'a>(
    bytes: &'a [u8],
    geometry: &Geometry,
    offset: usize,
    len: usize,
) -> Result<&'a [u8], String> {
    let part = symlink_payload(geometry, bytes.len()).min(len.saturating_sub(offset));
    if geometry.features.crc { remote_payload_at(bytes, offset, part) } else { Ok(&bytes[..part]) }
}

/// Fills an extent, all of `edit`, with the part of a target that starts at `offset`.
pub fn write_symlink(
    edit: &mut EditBytes<'_>,
    geometry: &Geometry,
    identity: &BlockIdentity,
    offset: usize,
    part: &[u8],
) {
    let size = edit.bytes().len();
    let start = size - symlink_payload(geometry, size);
    if geometry.features.crc {
        write_remote_header(edit, SYMLINK_MAGIC, identity, (offset, part.len()), Lsn(0));
    }
    edit.put_bytes(start, part);
    edit.zero(start + part.len()..size);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Changes;
    use crate::inode::samples::geometry;
    use crate::units::InodeNumber;
    use undercroft_block::Sector;

    #[test]
    fn one_extent_of_two_blocks_has_one_header() {
        let geometry = geometry(10, 9);
        assert_eq!(symlink_blocks(&geometry, 968), 1);
        assert_eq!(symlink_blocks(&geometry, 1023), 2);
        let identity =
            BlockIdentity { blkno: Sector(64), uuid: geometry.meta_uuid, owner: InodeNumber(131) };
        let target = vec![b'x'; 1023];
        let (mut bytes, mut changes) = (vec![0xff; 2048], Changes::default());
        let mut edit = EditBytes::new(&mut bytes, &mut changes);
        write_symlink(&mut edit, &geometry, &identity, 0, &target);
        assert_eq!(verify_symlink(&bytes, &geometry), Ok(()));
        assert_eq!(symlink_part(&bytes, &geometry, 0, 1023), Ok(&target[..]));
        assert!(symlink_part(&bytes, &geometry, 0, 1022).is_err());
        assert!(symlink_part(&bytes, &geometry, 968, 1023).is_err());
        bytes[0] = 0;
        assert!(verify_symlink(&bytes, &geometry).is_err());
        assert!(verify_symlink(&[], &geometry).is_err());
    }
}
