//! Blocks of remote attribute values (docs/format/attributes.md#remote-values).
//!
//! Each block of a version 5 volume names its place in the value; version 4 stores the bare value.

use crate::ATTR_VALUE_MAX;
use crate::bytes::{EditBytes, be64};
use crate::geometry::Geometry;
use crate::hash_tree::block::BlockIdentity;
use crate::remote::header::{
    REMOTE_HEADER_FIELDS, REMOTE_HEADER_SIZE, remote_payload_at, verify_remote_header,
    write_remote_header,
};
use crate::units::Lsn;

/// "XARM".
pub const ATTR_REMOTE_MAGIC: u32 = 0x5841_524d;

const fn header_size(geometry: &Geometry) -> usize {
    if geometry.features.crc { REMOTE_HEADER_SIZE } else { 0 }
}

/// Bytes of a value that one block holds.
#[must_use]
pub const fn attr_remote_payload(geometry: &Geometry) -> usize {
    geometry.block_size() - header_size(geometry)
}

/// Blocks that a value of at most [`ATTR_VALUE_MAX`] bytes takes.
#[must_use]
pub const fn attr_remote_blocks(geometry: &Geometry, value: usize) -> u32 {
    value.div_ceil(attr_remote_payload(geometry)) as u32
}

/// Checks one block of a remote value; version 4 blocks have nothing to check.
///
/// # Errors
///
/// The field and its defect.
pub fn verify_attr_remote(bytes: &[u8], geometry: &Geometry) -> Result<(), String> {
    if bytes.len() != geometry.block_size() {
        return Err(format!("{} bytes, not one block", bytes.len()));
    }
    if !geometry.features.crc {
        return Ok(());
    }
    verify_remote_header(bytes, ATTR_REMOTE_MAGIC, ATTR_VALUE_MAX)?;
    let lsn = Lsn(be64(bytes, REMOTE_HEADER_FIELDS.lsn));
    if !lsn.is_null() {
        return Err(format!("log sequence number is {lsn}, must be all ones"));
    }
    Ok(())
}

/// The part of a value of `len` bytes that a verified block holds, from `offset` on.
///
/// # Errors
///
/// The block belongs to another place, or to a value of another length.
pub fn attr_remote_part<'a>(
    bytes: &'a [u8],
    geometry: &Geometry,
    offset: usize,
    len: usize,
) -> Result<&'a [u8], String> {
    let part = attr_remote_payload(geometry).min(len.saturating_sub(offset));
    if geometry.features.crc { remote_payload_at(bytes, offset, part) } else { Ok(&bytes[..part]) }
}

/// Fills a block with the part of a value (at most [`attr_remote_payload`] bytes) that starts at
/// `offset`.
pub fn write_attr_remote(
    edit: &mut EditBytes<'_>,
    geometry: &Geometry,
    identity: &BlockIdentity,
    offset: usize,
    part: &[u8],
) {
    let start = header_size(geometry);
    if geometry.features.crc {
        let range = (offset, part.len());
        write_remote_header(edit, ATTR_REMOTE_MAGIC, identity, range, Lsn::NULL);
    }
    edit.put_bytes(start, part);
    edit.zero(start + part.len()..geometry.block_size());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Changes;
    use crate::inode::samples::geometry;
    use crate::units::InodeNumber;
    use proptest::prelude::*;
    use undercroft_block::Sector;

    #[test]
    fn blocks_hold_what_was_written_and_know_their_place() {
        let geometry = geometry(12, 9);
        assert_eq!(attr_remote_blocks(&geometry, 65536), 17);
        let identity =
            BlockIdentity { blkno: Sector(800), uuid: geometry.meta_uuid, owner: InodeNumber(131) };
        let value: Vec<u8> = (0..5000_u32).map(|i| i as u8).collect();
        let (mut bytes, mut changes) = (vec![0xff; 4096], Changes::default());
        let mut edit = EditBytes::new(&mut bytes, &mut changes);
        write_attr_remote(&mut edit, &geometry, &identity, 4040, &value[4040..]);
        assert_eq!(bytes[..12], [b'X', b'A', b'R', b'M', 0, 0, 0x0f, 0xc8, 0, 0, 0x03, 0xc0]);
        assert_eq!(bytes[48..56], [0xff; 8]);
        assert_eq!(verify_attr_remote(&bytes, &geometry), Ok(()));
        assert_eq!(attr_remote_part(&bytes, &geometry, 4040, 5000), Ok(&value[4040..]));
        assert!(attr_remote_part(&bytes, &geometry, 0, 5000).is_err());
        assert!(attr_remote_part(&bytes, &geometry, 4040, 5001).is_err());
        bytes[48] = 0;
        assert!(verify_attr_remote(&bytes, &geometry).unwrap_err().contains("all ones"));
    }

    proptest! {
        #[test]
        fn any_header_is_accepted_or_refused(
            head in proptest::collection::vec(any::<u8>(), 52),
            offset in 0_usize..70000,
            len in 0_usize..70000,
        ) {
            let geometry = geometry(10, 9);
            let mut bytes = ATTR_REMOTE_MAGIC.to_be_bytes().to_vec();
            bytes.extend(head);
            bytes.resize(1024, 0);
            bytes[48..56].fill(0xff);
            if verify_attr_remote(&bytes, &geometry).is_ok() {
                let _ = attr_remote_part(&bytes, &geometry, offset, len);
            }
        }
    }
}
