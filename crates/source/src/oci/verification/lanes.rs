//! One thread that compares digests, of several layers at a time where it can.

use super::super::digest::Digest;
use super::super::error::ImageProblem;
use super::super::sha256::{BLOCK, State, update_together};
use super::Claim;
use crate::region::Region;
use std::io;
use std::ops::Range;

/// Layers of which one thread computes digests at a time.
pub(super) const LANES_MAX: usize = 4;

/// Bytes that are read at a time: those of all lanes stay in the caches of a processor.
const PIECE: usize = 64 * 1024;

/// Number of a claim and its outcome.
pub(super) type Outcome = (usize, Result<(), ImageProblem>);

/// A region that is read in blocks.
struct Blocks {
    region: Region,
    /// Where the region is read next.
    position: u64,
    buffer: Vec<u8>,
    /// The part of the buffer that was not taken yet.
    unread: Range<usize>,
}

impl Blocks {
    fn new(region: Region) -> Self {
        Self { region, position: 0, buffer: vec![0; PIECE], unread: 0..0 }
    }

    /// Reads more where less than a block is left; false at the end of the region.
    fn fill(&mut self) -> io::Result<bool> {
        if self.unread.len() >= BLOCK {
            return Ok(true);
        }
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        while self.unread.len() < BLOCK {
            let count = self.region.read_at(&mut self.buffer[self.unread.end..], self.position)?;
            if count == 0 {
                return Ok(false);
            }
            self.position += count as u64;
            self.unread.end += count;
        }
        Ok(true)
    }

    /// The whole blocks that were read, and what is behind them.
    fn parts(&self) -> (&[[u8; BLOCK]], &[u8]) {
        self.buffer[self.unread.clone()].as_chunks()
    }

    fn take(&mut self, count: usize) {
        self.unread.start += count * BLOCK;
    }
}

/// A claim whose bytes are being hashed.
struct Lane {
    number: usize,
    claim: Claim,
    state: State,
    bytes: Blocks,
}

impl Lane {
    fn new(number: usize, claim: Claim) -> Self {
        let bytes = Blocks::new(claim.region.clone());
        Self { number, claim, state: State::new(), bytes }
    }

    /// Compares the digest, unless the region could not be read to its end.
    fn end(self, read: io::Result<bool>) -> Outcome {
        let (_, rest) = self.bytes.parts();
        let found = read.map(|_| Digest::sha256(self.state.finish(rest)));
        (self.number, self.claim.verdict(found))
    }
}

/// Hashes blocks that were read, until a lane has no more of them.
fn advance(lanes: &mut [Lane]) {
    match lanes {
        [a, b, c, d] => advance_together([a, b, c, d]),
        [a, b, c] => advance_together([a, b, c]),
        [a, b] => advance_together([a, b]),
        lanes => lanes.iter_mut().for_each(|lane| advance_together([lane])),
    }
}

fn advance_together<const N: usize>(mut lanes: [&mut Lane; N]) {
    let message = |lane| {
        let &mut &mut Lane { ref mut state, ref bytes, .. } = lane;
        (state, bytes.parts().0)
    };
    let count = update_together(lanes.each_mut().map(message));
    lanes.into_iter().for_each(|lane| lane.bytes.take(count));
}

/// Compares the claims that `next` gives, up to `width` ([`LANES_MAX`] at most) at a time, and hands
/// out what became of them, until there are no more or `go_on` says no.
pub(super) fn run(
    width: usize,
    next: &dyn Fn() -> Option<(usize, Claim)>,
    go_on: &dyn Fn() -> bool,
    done: &dyn Fn(Outcome),
) {
    let mut lanes: Vec<Lane> = Vec::with_capacity(width);
    while go_on() {
        while lanes.len() < width
            && let Some((number, claim)) = next()
        {
            if claim.digest.is_sha256() {
                lanes.push(Lane::new(number, claim));
            } else {
                done((number, claim.check(go_on)));
            }
        }
        if lanes.is_empty() {
            return;
        }
        // A lane that ends makes room for another claim.
        let before = lanes.len();
        for index in (0..before).rev() {
            match lanes[index].bytes.fill() {
                Ok(true) => {}
                ended => done(lanes.swap_remove(index).end(ended)),
            }
        }
        if lanes.len() == before {
            advance(&mut lanes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::error::Role;
    use super::super::Claimed;
    use super::*;
    use sha2::{Digest as _, Sha256};
    use std::cell::RefCell;
    use std::io::Write as _;
    use std::sync::Arc;

    fn region(bytes: &[u8]) -> Region {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Region::whole(Arc::new(file)).unwrap()
    }

    fn claim(bytes: &[u8], digest: Digest) -> Claim {
        let (role, name) = (Role::Layer(1), "blob".to_owned());
        Claim { role, name, region: region(bytes), digest, claimed: Claimed::Blob }
    }

    fn sha256(bytes: &[u8]) -> Digest {
        Digest::sha256(Sha256::digest(bytes).into())
    }

    /// The numbers of the claims that do not hold.
    fn faults(claims: Vec<Claim>, width: usize) -> Vec<usize> {
        let count = claims.len();
        let claims = RefCell::new(claims.into_iter().enumerate());
        let outcomes = RefCell::new(Vec::new());
        let next = || claims.borrow_mut().next();
        run(width, &next, &|| true, &|outcome| outcomes.borrow_mut().push(outcome));
        let mut outcomes = outcomes.into_inner();
        outcomes.sort_by_key(|(number, _)| *number);
        assert!(outcomes.iter().map(|(number, _)| *number).eq(0..count), "each claim once");
        outcomes.into_iter().filter(|(_, result)| result.is_err()).map(|it| it.0).collect()
    }

    #[test]
    fn claims_of_any_lengths_are_told_apart() {
        let lengths = [0, 1, 55, 56, 63, 64, 65, 128, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 7];
        for width in 1..=LANES_MAX {
            for turn in 0..lengths.len() {
                let mut claims = Vec::new();
                for index in 0..lengths.len() {
                    let length = lengths[(index * 5 + turn) % lengths.len()];
                    let mut bytes: Vec<u8> = (0..length).map(|at| (at * 7 + index) as u8).collect();
                    let digest = sha256(&bytes);
                    // One changed bit in a third of them, or a byte more.
                    if index % 3 == 1 {
                        match bytes.last_mut() {
                            Some(last) => *last ^= 0x10,
                            None => bytes.push(0),
                        }
                    }
                    claims.push(claim(&bytes, digest));
                }
                assert_eq!(faults(claims, width), [1, 4, 7, 10], "width {width}, turn {turn}");
            }
        }
    }

    #[test]
    fn another_algorithm_is_compared_between_them() {
        let zero = Digest::parse(&format!("sha512:{}", "0".repeat(128))).unwrap();
        let mut hasher = zero.hasher();
        hasher.update(b"five");
        let sha512 = hasher.finish();
        let claims = vec![
            claim(&vec![1; 3 * PIECE], sha256(&vec![1; 3 * PIECE])),
            claim(b"five", sha512.clone()),
            claim(b"four", sha512),
            claim(b"six", sha256(b"six")),
        ];
        assert_eq!(faults(claims, 2), [2]);
    }

    #[test]
    fn nothing_is_done_once_it_need_not_go_on() {
        let next = || Some((0, claim(b"five", sha256(b"five"))));
        run(2, &next, &|| false, &|_| panic!("an outcome that nobody wants"));
    }
}
