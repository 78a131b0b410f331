//! What a superblock says, in whichever version.

use undercroft_block::Sector;

/// What a superblock says of an array and of the member that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) id: [u8; 16],
    /// Its name, perhaps with a machine's and a colon before it.
    pub(super) name: String,
    pub(super) level: Level,
    /// Members that an array has which lacks none.
    pub(super) members: usize,
    /// Sectors before the next member's turn.
    pub(super) chunk: u64,
    /// Sectors of each member that are in use, where all have as many.
    pub(super) size: Sector,
    /// Counts the changes.
    pub(super) events: u64,
    /// Whether all members hold the same, where they should.
    pub(super) is_same: bool,
    /// What the member is by its own number, of each number.
    pub(super) roles: Vec<Role>,
    /// The number of this member.
    pub(super) number: usize,
    /// Where the data are on this member.
    pub(super) start: Sector,
    pub(super) length: Sector,
    /// It does not have all data yet.
    pub(super) is_recovering: bool,
    /// What is not read here, if there is something.
    pub(super) obstacle: Option<String>,
}

/// How the members make the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Linear,
    Stripe,
    Mirror,
    /// So many copies of each chunk, on members that follow each other.
    MirroredStripe(usize),
    Other(i32),
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The member of this number among those with data.
    Active(usize),
    /// A spare one, or one that failed.
    Unused,
}

impl Level {
    /// Of the numbers in a superblock.
    pub(super) fn of(level: i32, layout: u32) -> Result<Self, String> {
        match level {
            -1 => Ok(Self::Linear),
            0 => Ok(Self::Stripe),
            1 => Ok(Self::Mirror),
            // Copies near each other in the first byte, copies far from each other in the second.
            10 if layout >> 8 == 1 && layout & 0xff > 0 => {
                Ok(Self::MirroredStripe((layout & 0xff) as usize))
            }
            10 => Err(format!("RAID 10 in another layout than near ({layout:#x})")),
            level => Ok(Self::Other(level)),
        }
    }
}

/// The sum of the 32-bit words of a superblock, of which its own checksum counts as 0.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let words = bytes
        .chunks(4)
        .map(|word| word.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)));
    let sum: u64 = words.sum();
    (sum as u32).wrapping_add((sum >> 32) as u32)
}
