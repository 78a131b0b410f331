//! The header that blocks of remote attribute values and of symbolic link targets share
//! (docs/format/attributes.md#remote-values and docs/format/symlinks.md#extent-header): which bytes
//! of the whole they hold, and the self-describing fields.

use crate::HeaderFields;
use crate::bytes::{EditBytes, be32};
use crate::hash_tree::block::BlockIdentity;
use crate::units::Lsn;

/// Bytes of the header.
pub(crate) const REMOTE_HEADER_SIZE: usize = 56;

/// Where the self-describing fields are. The log sequence number of an attribute value is all
/// ones, always; a symbolic link carries a real one.
pub(crate) const REMOTE_HEADER_FIELDS: HeaderFields = HeaderFields::REMOTE;

const OFFSET: usize = 4;
const BYTES: usize = 8;

/// Bytes of the whole that come before, and bytes held, as the header says.
pub(crate) fn remote_range(bytes: &[u8]) -> (usize, usize) {
    (be32(bytes, OFFSET) as usize, be32(bytes, BYTES) as usize)
}

/// Checks magic and range of a block of `bytes` against the longest whole, `max`.
///
/// # Errors
///
/// The field and its defect.
pub(crate) fn verify_remote_header(bytes: &[u8], magic: u32, max: usize) -> Result<(), String> {
    if bytes.len() <= REMOTE_HEADER_SIZE {
        return Err(format!("{} bytes are too few", bytes.len()));
    }
    let found = be32(bytes, 0);
    if found != magic {
        return Err(format!("magic is {found:#010x}, expected {magic:#010x}"));
    }
    let (offset, len) = remote_range(bytes);
    if len == 0 || len > bytes.len() - REMOTE_HEADER_SIZE || offset.saturating_add(len) > max {
        return Err(format!(
            "holds {len} bytes from byte {offset} of at most {max}, in a block of {}",
            bytes.len()
        ));
    }
    Ok(())
}

/// Checks that a verified block holds exactly `len` bytes from `offset`, and returns them.
///
/// # Errors
///
/// The value it holds instead.
pub(crate) fn remote_payload_at(bytes: &[u8], offset: usize, len: usize) -> Result<&[u8], String> {
    let found = remote_range(bytes);
    if found != (offset, len) {
        return Err(format!(
            "holds {} bytes from byte {}, expected {len} from {offset}",
            found.1, found.0
        ));
    }
    Ok(&bytes[REMOTE_HEADER_SIZE..REMOTE_HEADER_SIZE + len])
}

/// Writes the header; the checksum is stamped at write-back.
pub(crate) fn write_remote_header(
    edit: &mut EditBytes<'_>,
    magic: u32,
    identity: &BlockIdentity,
    range: (usize, usize),
    lsn: Lsn,
) {
    edit.zero(0..REMOTE_HEADER_SIZE);
    edit.put_be32(0, magic);
    // Ranges lie inside a whole of at most 64 KiB.
    edit.put_be32(OFFSET, range.0 as u32);
    edit.put_be32(BYTES, range.1 as u32);
    edit.put_bytes(REMOTE_HEADER_FIELDS.uuid, identity.uuid.as_bytes());
    edit.put_be64(REMOTE_HEADER_FIELDS.owner, identity.owner.0);
    edit.put_be64(REMOTE_HEADER_FIELDS.blkno, identity.blkno.0);
    edit.put_be64(REMOTE_HEADER_FIELDS.lsn, lsn.0);
}
