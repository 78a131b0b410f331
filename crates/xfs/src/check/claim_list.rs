//! Claims on the blocks of one group, packed: some seven bytes each where files lie in the order of
//! their inodes.

use crate::format::{RmapFlags, RmapOwner, RmapRecord};
use crate::units::{AgBlock, FileBlock};

/// Bytes of the longest part: what is reserved and not used stays small.
const LONGEST: usize = 64 << 10;

/// Bytes of the shortest part.
const SHORTEST: usize = 64;

/// Most bytes of a claim: four numbers.
const CLAIM_MAX: usize = 4 * 10;

/// Flags of a claim, in the order of their bits in the second number.
const FLAGS: [RmapFlags; 3] = [RmapFlags::ATTR_FORK, RmapFlags::BMBT_BLOCK, RmapFlags::UNWRITTEN];

/// Claims on the blocks of one group, in the order of their coming.
#[derive(Clone, Debug, Default)]
pub struct ClaimList {
    /// Each claim is in one part.
    parts: Vec<Vec<u8>>,
    bytes: usize,
    len: usize,
    last: Last,
}

/// What the next claim is told by.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    end: u32,
    owner: u64,
}

impl ClaimList {
    /// Number of claims.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a claim.
    pub fn push(&mut self, claim: &RmapRecord) {
        let flags = (0..).zip(FLAGS).filter(|(_, flag)| claim.flags.contains(*flag));
        let flags = flags.fold(0, |bits, (index, _)| bits | 1 << index);
        let numbers = [
            zigzag(i64::from(claim.start.0) - i64::from(self.last.end)),
            u64::from(claim.len) << FLAGS.len() | flags,
            zigzag(claim.owner.0.wrapping_sub(self.last.owner) as i64),
        ];
        let is_full = |part: &Vec<u8>| part.capacity() - part.len() < CLAIM_MAX;
        if self.parts.last().is_none_or(is_full) {
            let capacity = self.bytes.clamp(SHORTEST, LONGEST);
            self.parts.push(Vec::with_capacity(capacity));
        }
        if let Some(part) = self.parts.last_mut() {
            let before = part.len();
            numbers.into_iter().for_each(|number| put(part, number));
            if claim.has_offset() {
                put(part, claim.offset.0);
            }
            self.bytes += part.len() - before;
        }
        self.last = Last::of(claim);
        self.len += 1;
    }

    /// The claims.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { parts: self.parts.iter(), rest: &[], last: Last::default() }
    }
}

impl<'l> IntoIterator for &'l ClaimList {
    type Item = RmapRecord;
    type IntoIter = Iter<'l>;

    fn into_iter(self) -> Iter<'l> {
        self.iter()
    }
}

impl Last {
    const fn of(claim: &RmapRecord) -> Self {
        Self { end: claim.start.0.wrapping_add(claim.len), owner: claim.owner.0 }
    }
}

/// The claims of a list.
#[derive(Debug)]
pub struct Iter<'l> {
    parts: std::slice::Iter<'l, Vec<u8>>,
    rest: &'l [u8],
    last: Last,
}

impl Iterator for Iter<'_> {
    type Item = RmapRecord;

    fn next(&mut self) -> Option<RmapRecord> {
        while self.rest.is_empty() {
            self.rest = self.parts.next()?;
        }
        let start = i64::from(self.last.end) + unzigzag(take(&mut self.rest));
        let len = take(&mut self.rest);
        let owner = self.last.owner.wrapping_add(unzigzag(take(&mut self.rest)) as u64);
        let flags = (0..).zip(FLAGS).filter(|(index, _)| len >> index & 1 != 0);
        let mut claim = RmapRecord {
            start: AgBlock(start as u32),
            len: (len >> FLAGS.len()) as u32,
            owner: RmapOwner(owner),
            offset: FileBlock(0),
            flags: flags.fold(RmapFlags::empty(), |flags, (_, flag)| flags | flag),
        };
        if claim.has_offset() {
            claim.offset = FileBlock(take(&mut self.rest));
        }
        self.last = Last::of(&claim);
        Some(claim)
    }
}

/// Small numbers of either sign as small ones.
const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Adds a number, seven bits a byte, the lowest first.
fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn take(from: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((byte, rest)) = from.split_first() {
        *from = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::InodeNumber;

    #[test]
    fn claims_come_back_as_they_were() {
        let claim = |start, len, owner, offset, flags| RmapRecord {
            start: AgBlock(start),
            len,
            owner,
            offset: FileBlock(offset),
            flags,
        };
        let file = |number| RmapOwner::inode(InodeNumber(number));
        let none = RmapFlags::empty();
        let mut claims = vec![
            claim(0, 4, RmapOwner::FILE_SYSTEM, 0, none),
            claim(u32::MAX - 1, 1, file(1 << 60), (1 << 54) - 1, RmapFlags::UNWRITTEN),
            claim(8, 1 << 21, file(131), 0, RmapFlags::ATTR_FORK),
            claim(7, u32::MAX, RmapOwner(u64::MAX), 0, none),
            claim(9, 1, file(131), 0, RmapFlags::BMBT_BLOCK | RmapFlags::ATTR_FORK),
        ];
        claims.extend((0..10_000).map(|index| claim(index * 4, 4, file(index.into()), 0, none)));
        let mut list = ClaimList::default();
        assert!(list.is_empty() && list.iter().next().is_none());
        claims.iter().for_each(|claim| list.push(claim));
        assert_eq!(list.len(), claims.len());
        assert!(list.iter().eq(claims));
        assert!(list.bytes < 10_000 * 7, "{}", list.bytes);
    }
}
