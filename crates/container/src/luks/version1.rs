//! The header of version 1, whose fields are big-endian.

use super::header::{Derivation, Digest, Hash, Header, Obstacle, Segment, Slot, check_cipher};
use crate::field::be32;

const SLOTS: usize = 8;
const SLOT: usize = 48;
const IN_USE: u32 = 0x00ac_71f3;

/// Parses the first bytes of a device, of which there are enough.
pub(super) fn parse(bytes: &[u8]) -> Result<Header, Obstacle> {
    let damaged = |what: &str| Obstacle::Damaged(what.to_owned());
    let cipher = format!("{}-{}", text(&bytes[8..40]), text(&bytes[40..72]));
    check_cipher(&cipher)?;
    let hash = Hash::of(&text(&bytes[72..104]))?;
    let start = u64::from(be32(bytes, 104)) * 512;
    if start == 0 {
        return Err(Obstacle::NotSupported(
            "only a header, whose data are on another device".into(),
        ));
    }
    let key_bytes = be32(bytes, 108) as usize;
    let digest = Digest {
        // Whatever the rest uses.
        hash,
        iterations: be32(bytes, 164),
        salt: bytes[132..164].to_vec(),
        value: bytes[112..132].to_vec(),
    };
    let mut slots = Vec::new();
    for (number, slot) in bytes[208..208 + SLOTS * SLOT].chunks_exact(SLOT).enumerate() {
        if be32(slot, 0) != IN_USE {
            continue;
        }
        let (iterations, salt) = (be32(slot, 4), slot[8..40].to_vec());
        let slot = Slot {
            derivation: Derivation::Pbkdf2 { hash, iterations, salt },
            area_key_bytes: key_bytes,
            key_bytes,
            stripes: be32(slot, 44) as usize,
            hash,
            start: u64::from(be32(slot, 40)) * 512,
            digest: digest.clone(),
        };
        slot.check(&number.to_string())?;
        slots.push(slot);
    }
    if slots.is_empty() {
        return Err(damaged("no key slot is in use, so that nobody can open it"));
    }
    let uuid = text(&bytes[168..208]);
    let segment = Segment { start, length: None, sector_bytes: 512, first_number: 0 };
    Ok(Header { uuid, slots, segment })
}

/// The text in a field that is filled with zeros.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}
