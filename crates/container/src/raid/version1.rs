//! Superblocks of the versions 1.0, 1.1 and 1.2, which differ in their places.

use super::superblock::{Level, Role, Superblock, sum};
use crate::field::{le32, le64};
use undercroft_block::Sector;

/// Bytes before the roles of the members.
const FIXED: usize = 256;
/// Bytes that a superblock has at most.
pub(super) const LENGTH: usize = 4096;
const MAX_MEMBERS: usize = (LENGTH - FIXED) / 2;

/// Features that change nothing for who reads data, or for who writes whole members.
const BITMAP: u32 = 1;
const RECOVERY: u32 = 1 << 1;
const RAID0_LAYOUT: u32 = 1 << 12;
/// Features with their names.
const OTHERS: [(u32, &str); 4] = [
    (1 << 2, "which is being reshaped"),
    (1 << 3, "with a list of bad blocks"),
    (1 << 4, "with a member that is being replaced"),
    (1 << 8, "of a cluster"),
];

/// Parses a superblock that is at a sector of a device; `None` if there is none of this place.
pub(super) fn parse(bytes: &[u8], place: Sector) -> Option<Result<Superblock, String>> {
    let is_one = le32(bytes, 0) == 0xa92b_4efc && le32(bytes, 4) == 1;
    // One of another place is that of a partition, or of a whole disk.
    (is_one && le64(bytes, 144) == place.0).then(|| checked(bytes))
}

fn checked(bytes: &[u8]) -> Result<Superblock, String> {
    let members = le32(bytes, 220) as usize;
    if members > MAX_MEMBERS {
        return Err(format!("room for {members} members"));
    }
    let mut own = bytes[..FIXED + 2 * members].to_vec();
    own[216..220].fill(0);
    if sum(&own) != le32(bytes, 216) {
        return Err("its checksum is wrong".into());
    }
    let features = le32(bytes, 8);
    let level = Level::of(le32(bytes, 72).cast_signed(), le32(bytes, 76));
    let known = BITMAP | RECOVERY | RAID0_LAYOUT | OTHERS.iter().fold(0, |all, (bit, _)| all | bit);
    let other = OTHERS.iter().find(|(bit, _)| features & bit != 0);
    let obstacle = match (&level, other) {
        (Err(kind), _) => Some(kind.clone()),
        (Ok(_), Some((_, name))) => Some(format!("an array {name}")),
        (Ok(_), None) if features & !known != 0 => {
            Some("an array with features of a newer kernel".into())
        }
        (Ok(_), None) => None,
    };
    let roles =
        own[FIXED..].chunks_exact(2).map(|role| match u16::from_le_bytes([role[0], role[1]]) {
            0xfff0.. => Role::Unused,
            number => Role::Active(number.into()),
        });
    let name = &bytes[32..64];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(Superblock {
        id: bytes[16..32].try_into().map_err(|_| "it is cut")?,
        name: String::from_utf8_lossy(&name[..end]).into_owned(),
        level: level.unwrap_or(Level::Other(0)),
        members: le32(bytes, 92) as usize,
        chunk: le32(bytes, 88).into(),
        size: Sector(le64(bytes, 80)),
        events: le64(bytes, 200),
        is_same: le64(bytes, 208) == u64::MAX,
        roles: roles.collect(),
        number: le32(bytes, 160) as usize,
        start: Sector(le64(bytes, 128)),
        length: Sector(le64(bytes, 136)),
        is_recovering: features & RECOVERY != 0,
        obstacle,
    })
}
