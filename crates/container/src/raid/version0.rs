//! Superblocks of version 0.90, near the end of a member, as machines write them whose numbers begin
//! with the low byte.

use super::superblock::{Level, Role, Superblock, sum};
use crate::field::{le32, le64};
use undercroft_block::Sector;

pub(super) const LENGTH: usize = 4096;
/// Members that there is room for.
const MAX_MEMBERS: usize = 27;
/// Where what is known of them begins, and the bytes of each.
const MEMBERS: usize = 512;
const MEMBER: usize = 128;
/// Where it is said which of them has this superblock.
const OWN: usize = 992 * 4;
/// Sectors that a member's end may be before its superblock: members of arrays have whole chunks.
const SLACK: u64 = 4096;

const IN_SYNC: u32 = 1 << 2;
const FAILED: u32 = 1;

/// Parses a superblock that is at a sector of a device; `None` if there is none of this place.
pub(super) fn parse(bytes: &[u8], place: Sector) -> Option<Result<Superblock, String>> {
    let is_one = le32(bytes, 0) == 0xa92b_4efc && le32(bytes, 4) == 0 && le32(bytes, 8) == 90;
    (is_one && size(bytes) <= place.0).then(|| checked(bytes, place))
}

/// Whether a superblock may be that of the last partition of the device, which is at its end, too. A member
/// may be longer than the array has use for, but rarely is.
pub(super) fn may_be_of_partition(superblock: &Superblock) -> bool {
    superblock.length.0 - superblock.size.0 > SLACK
}

/// Sectors of a member that the array uses.
fn size(bytes: &[u8]) -> u64 {
    u64::from(le32(bytes, 32)) * 2
}

fn checked(bytes: &[u8], place: Sector) -> Result<Superblock, String> {
    let mut own = bytes[..LENGTH].to_vec();
    own[152..156].fill(0);
    if sum(&own) != le32(bytes, 152) {
        return Err("its checksum is wrong".into());
    }
    let level = Level::of(le32(bytes, 28).cast_signed(), le32(bytes, 256));
    let is_reshaped = le32(bytes, 8 + 4) >= 91;
    let obstacle = match &level {
        Err(kind) => Some(kind.clone()),
        Ok(_) if is_reshaped => Some("an array which is being reshaped".into()),
        Ok(_) => None,
    };
    let roles = (0..MAX_MEMBERS).map(|number| {
        let member = &bytes[MEMBERS + number * MEMBER..][..MEMBER];
        let (place, state) = (le32(member, 12), le32(member, 16));
        match state & (IN_SYNC | FAILED) {
            IN_SYNC => Role::Active(place as usize),
            _ => Role::Unused,
        }
    });
    let id = [(20, 0), (52, 4), (56, 8), (60, 12)];
    let mut whole = [0; 16];
    for (from, to) in id {
        // As mdadm writes it: each word with its high byte first.
        whole[to..to + 4].copy_from_slice(&le32(bytes, from).to_be_bytes());
    }
    Ok(Superblock {
        id: whole,
        name: String::new(),
        level: level.unwrap_or(Level::Other(0)),
        members: le32(bytes, 40) as usize,
        chunk: u64::from(le32(bytes, 260)) / 512,
        size: Sector(size(bytes)),
        events: le64(bytes, 156),
        // It was stopped, and nothing was left to be made the same.
        is_same: le32(bytes, 132) & 1 != 0 && matches!(le32(bytes, 172), 0 | u32::MAX),
        roles: roles.collect(),
        number: le32(bytes, OWN) as usize,
        start: Sector::ZERO,
        length: place,
        is_recovering: false,
        obstacle,
    })
}
