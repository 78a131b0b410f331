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

/// Number of slots of the ring on which the ends of a list and its counter agree: [`slots`], or one
/// less. Kernels before 4.5 on 64-bit machines had a slot less, and a list of theirs that wraps is
/// told by that.
///
/// # Errors
///
/// [`HeaderError::FreeList`] when ends and counter contradict each other.
pub fn ring(agf: &Agf, geometry: &Geometry) -> Result<u32, HeaderError> {
    let slots = slots(geometry);
    let (first, last, count) = (agf.free_list_first, agf.free_list_last, agf.free_list_count);
    check_range("flfirst", first, 0, slots - 1)?;
    check_range("fllast", last, 0, slots - 1)?;
    // With no entries the ends say nothing: an empty ring looks like a full one.
    let counted = |ring| if count == 0 { 0 } else { (last + ring - first) % ring + 1 };
    if counted(slots) == count {
        return Ok(slots);
    }
    let short = slots - 1;
    if first < short && last < first && counted(short) == count {
        return Ok(short);
    }
    Err(HeaderError::FreeList { first, last, slots, counted: counted(slots), count })
}

/// Whether the [`ring`] of a list has a slot less than it should.
#[must_use]
pub fn is_short(agf: &Agf, geometry: &Geometry) -> bool {
    ring(agf, geometry) == Ok(slots(geometry) - 1)
}

/// Puts the blocks of a list that [is short](is_short) where they belong.
pub fn renew(agf: &mut Agf, edit: &mut EditBytes<'_>, geometry: &Geometry) {
    let blocks: Vec<AgBlock> = live(agf, edit.bytes(), geometry).collect();
    agf.free_list_first = EMPTY_FIRST;
    agf.free_list_last = EMPTY_LAST;
    agf.free_list_count = 0;
    for block in blocks {
        // They are fewer than the slots.
        let _ = put_tail(agf, edit, geometry, block);
    }
}

/// The live blocks, in the order in which they will be taken. The numbers are unchecked.
pub fn live<'a>(
    agf: &Agf,
    bytes: &'a [u8],
    geometry: &'a Geometry,
) -> impl Iterator<Item = AgBlock> + 'a {
    let first = agf.free_list_first;
    let ring = ring(agf, geometry).unwrap_or(slots(geometry));
    (0..agf.free_list_count.min(ring)).map(move |step| get(bytes, geometry, (first + step) % ring))
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
    let ring = ring(agf, geometry).unwrap_or(slots(geometry));
    agf.free_list_first = (agf.free_list_first + 1) % ring;
    agf.free_list_count -= 1;
    Ok(Some(block))
}

/// Puts `block` at the tail of the list, which was [renewed](renew) if that was due; `false` when all
/// slots are taken.
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
