//! Free list of an allocation group: blocks set aside for its own trees
//! (docs/format/groups.md#agfl).
//!
//! The list is a ring of slots in a sector of its own; its ends and its length are fields of the
//! [`Agf`], so the operations take both. Checksum and LSN are stamped by the writer of the buffer.

use super::agf::Agf;
use super::free_list_slots::slot_offset;
pub use super::free_list_slots::slots;
use super::header::{HeaderError, check_range, check_uuid, check_value};
use crate::bytes::{EditBytes, be32, put_be32};
use crate::geometry::Geometry;
use crate::units::{AgBlock, AgNumber};

const MAGIC: u32 = u32::from_be_bytes(*b"XAFL");
const UUID_OFFSET: usize = 8;

/// The list as formatted: the first block lands in slot 1.
pub const EMPTY_FIRST: u32 = 1;
/// See [`EMPTY_FIRST`].
pub const EMPTY_LAST: u32 = 0;

/// Checks everything but the checksum.
///
/// # Errors
///
/// The first field or slot that breaks a rule.
pub fn verify(bytes: &[u8], geometry: &Geometry, ag: AgNumber) -> Result<(), HeaderError> {
    if !geometry.features.crc {
        return Ok(());
    }
    check_value("magicnum", be32(bytes, 0), MAGIC)?;
    check_value("seqno", be32(bytes, 4), ag.0)?;
    check_uuid(bytes, UUID_OFFSET, geometry)?;
    for slot in 0..slots(geometry) {
        let block = get(bytes, geometry, slot);
        if !block.is_null() {
            check_range("slot", block.0, 0, geometry.ag_blocks - 1)?;
        }
    }
    Ok(())
}

/// Makes `bytes`, one sector, the empty list of a new v5 group; LSN and checksum stay zero.
pub fn encode_empty(bytes: &mut [u8], geometry: &Geometry, ag: AgNumber) {
    bytes.fill(0);
    put_be32(bytes, 0, MAGIC);
    put_be32(bytes, 4, ag.0);
    bytes[UUID_OFFSET..UUID_OFFSET + 16].copy_from_slice(geometry.meta_uuid.as_bytes());
    for slot in 0..slots(geometry) {
        put_be32(bytes, slot_offset(geometry, slot), AgBlock::NULL.0);
    }
}

/// Compares the counter of the list with its ends.
///
/// # Errors
///
/// [`HeaderError::FreeList`] when they contradict each other; a kernel then starts a new list and
/// leaves the blocks of the old one to repair.
pub fn check_count(agf: &Agf, geometry: &Geometry) -> Result<(), HeaderError> {
    let slots = slots(geometry);
    let (first, last, count) = (agf.free_list_first, agf.free_list_last, agf.free_list_count);
    check_range("flfirst", first, 0, slots - 1)?;
    check_range("fllast", last, 0, slots - 1)?;
    // With no entries the ends say nothing: an empty ring looks like a full one.
    let counted = if count == 0 { 0 } else { (last + slots - first) % slots + 1 };
    if counted == count {
        Ok(())
    } else {
        Err(HeaderError::FreeList { first, last, slots, counted, count })
    }
}

/// The live blocks, in the order in which they will be taken. The numbers are unchecked.
pub fn live<'a>(
    agf: &Agf,
    bytes: &'a [u8],
    geometry: &'a Geometry,
) -> impl Iterator<Item = AgBlock> + 'a {
    let (first, slots) = (agf.free_list_first, slots(geometry));
    (0..agf.free_list_count.min(slots))
        .map(move |step| get(bytes, geometry, (first + step) % slots))
}

/// Takes the block at the head of the list; `None` when the list is empty.
///
/// # Errors
///
/// [`HeaderError::Range`] when the slot names a block that cannot be on the list.
pub fn take_head(
    agf: &mut Agf,
    bytes: &[u8],
    geometry: &Geometry,
) -> Result<Option<AgBlock>, HeaderError> {
    if agf.free_list_count == 0 {
        return Ok(None);
    }
    let block = get(bytes, geometry, agf.free_list_first);
    check_range("slot", block.0, geometry.ag_header_last().0 + 1, agf.length.saturating_sub(1))?;
    agf.free_list_first = (agf.free_list_first + 1) % slots(geometry);
    agf.free_list_count -= 1;
    Ok(Some(block))
}

/// Puts `block` at the tail of the list; `false` when all slots are taken.
#[must_use]
pub fn put_tail(
    agf: &mut Agf,
    edit: &mut EditBytes<'_>,
    geometry: &Geometry,
    block: AgBlock,
) -> bool {
    let slots = slots(geometry);
    if agf.free_list_count >= slots {
        return false;
    }
    agf.free_list_last = (agf.free_list_last + 1) % slots;
    agf.free_list_count += 1;
    edit.put_be32(slot_offset(geometry, agf.free_list_last), block.0);
    true
}

fn get(bytes: &[u8], geometry: &Geometry, slot: u32) -> AgBlock {
    AgBlock(be32(bytes, slot_offset(geometry, slot)))
}
