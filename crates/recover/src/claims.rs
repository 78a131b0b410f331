//! Who had a block last, of all files that are known to have had it.

use std::ops::Range;

use undercroft_xfs_format::Timestamp;

/// A file's claim on blocks: it had them at `lsn`, as far as is known for the last time.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) blocks: Range<u64>,
    /// The block of the file that the first of them was.
    pub(crate) offset: u64,
    pub(crate) lsn: u64,
    /// Number of the file among those that claim.
    pub(crate) file: usize,
    /// Of a file that may share blocks.
    pub(crate) life: Option<Life>,
}

/// The time in which a file had its present content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// It was made or changed last.
    pub(crate) changed: Timestamp,
    /// It was removed; `None` while it is there.
    pub(crate) ended: Option<Timestamp>,
}

impl Life {
    /// Whether there was a time at which both had their content.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let before =
            |one: &Self, other: &Self| other.ended.is_none_or(|ended| one.changed <= ended);
        before(self, other) && before(other, self)
    }
}

/// Ranges of blocks with the claim that is the last, in ascending order.
#[derive(Debug)]
pub(crate) struct Owners<'c> {
    claims: &'c [Claim],
    segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
struct Segment {
    blocks: Range<u64>,
    claim: usize,
    /// Another file claims them for the same time.
    is_contested: bool,
}

impl<'c> Owners<'c> {
    /// Finds the last claim on each block, in time that grows with the number of claims and little
    /// more, however many are on one block.
    pub(crate) fn new(claims: &'c [Claim]) -> Self {
        let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * claims.len());
        for (index, claim) in claims.iter().enumerate() {
            events.push((claim.blocks.start, true, index));
            events.push((claim.blocks.end, false, index));
        }
        events.sort_unstable();
        let mut active = std::collections::BTreeSet::new();
        let mut segments: Vec<Segment> = Vec::new();
        let mut events = events.into_iter().peekable();
        while let Some((at, begins, index)) = events.next() {
            let key = (claims[index].lsn, index);
            if begins {
                active.insert(key);
            } else {
                active.remove(&key);
            }
            let Some((next, ..)) = events.peek().copied() else { break };
            let mut last = active.iter().rev();
            if next > at
                && let Some((lsn, winner)) = last.next().copied()
            {
                let file = claims[winner].file;
                let is_contested = last
                    .take_while(|(other, _)| *other == lsn)
                    .take(2)
                    .any(|(_, other)| claims[*other].file != file);
                segments.push(Segment { blocks: at..next, claim: winner, is_contested });
            }
        }
        Self { claims, segments }
    }

    /// The parts of a claim of `file` that others had later, or may have had.
    pub(crate) fn lost(&self, own: &Claim) -> Vec<Range<u64>> {
        let first = self.segments.partition_point(|segment| segment.blocks.end <= own.blocks.start);
        let mut lost: Vec<Range<u64>> = Vec::new();
        for segment in &self.segments[first..] {
            if segment.blocks.start >= own.blocks.end {
                break;
            }
            let winner = &self.claims[segment.claim];
            let is_own = winner.file == own.file && !segment.is_contested;
            if is_own || is_clone(own, winner) {
                continue;
            }
            let part =
                segment.blocks.start.max(own.blocks.start)..segment.blocks.end.min(own.blocks.end);
            match lost.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => lost.push(part),
            }
        }
        lost
    }
}

/// Whether two files had the blocks together: both may share, at the same place of the file, and at
/// one time. Two that are there may share them anywhere.
fn is_clone(one: &Claim, other: &Claim) -> bool {
    let place = |claim: &Claim| claim.blocks.start.wrapping_sub(claim.offset);
    let Some((first, second)) = one.life.zip(other.life) else { return false };
    let are_there = first.ended.is_none() && second.ended.is_none();
    are_there || (first.meets(&second) && place(one) == place(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(file: usize, blocks: Range<u64>, lsn: u64) -> Claim {
        Claim { blocks, offset: 0, lsn, file, life: None }
    }

    fn one(range: Range<u64>) -> Vec<Range<u64>> {
        std::iter::once(range).collect()
    }

    #[test]
    fn the_last_claim_on_a_block_wins() {
        let claims =
            [claim(0, 0..10, 5), claim(1, 4..6, 9), claim(2, 8..20, 3), claim(0, 30..31, 5)];
        let owners = Owners::new(&claims);
        assert_eq!(owners.lost(&claims[0]), one(4..6));
        assert_eq!(owners.lost(&claims[1]), []);
        assert_eq!(owners.lost(&claims[2]), one(8..10));
        assert_eq!(owners.lost(&claims[3]), []);
    }

    #[test]
    fn claims_of_one_time_are_lost_for_both() {
        let claims = [claim(0, 0..4, 5), claim(1, 2..6, 5)];
        let owners = Owners::new(&claims);
        assert_eq!(owners.lost(&claims[0]), one(2..4));
        assert_eq!(owners.lost(&claims[1]), one(2..4));
    }

    #[test]
    fn a_hundred_thousand_claims_on_one_block_end() {
        let claims: Vec<_> = (0..100_000).map(|file| claim(file, 7..8, file as u64 / 2)).collect();
        let owners = Owners::new(&claims);
        assert_eq!(owners.lost(&claims[0]), one(7..8));
        assert_eq!(owners.lost(&claims[99_999]), one(7..8));
    }
}
