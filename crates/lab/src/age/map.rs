//! What free space is to look like.

use serde::{Deserialize, Serialize};
use undercroft_xfs::format::AllocRecord;
use undercroft_xfs::units::AgBlock;

use crate::error::LabError;

/// A picture of free space; lengths are in blocks, and every group gets the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "map", rename_all = "kebab-case")]
pub enum FreeMap {
    /// Holes of 1 to `hole` blocks between kept pieces of 1 to `kept` blocks, both uniform: many
    /// free extents of many lengths, as in the second experiment of 2019.
    Random {
        /// Longest hole.
        hole: u32,
        /// Longest kept piece.
        kept: u32,
    },
    /// `short` holes that are one block too short for a request of `request` blocks, one kept block
    /// between them; far behind, at the end of the group, `long` holes of one to 64 requests. A
    /// search for space near the short ones passes all of them.
    Pathological {
        /// Length of the requests that the map is hard for, at least 2.
        request: u32,
        /// Holes that are too short.
        short: u32,
        /// Holes that will do.
        long: u32,
    },
}

/// Longest hole of the pathological map in requests.
const LONGEST: u32 = 64;

/// A kept piece takes at most one in so many blocks of the group, so that it can be had at once.
const PIECES: u32 = 32;

impl FreeMap {
    /// The map of docs/algorithms/locality.md#ageing for groups of `blocks` blocks: some 2,200
    /// holes in each.
    #[must_use]
    pub fn random(blocks: u32) -> Self {
        let share = |part: u32| (u64::from(blocks) * u64::from(part) / 8_192_000).max(1) as u32;
        Self::Random { hole: share(5600), kept: share(1750) }
    }

    /// Name on command lines.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Random { .. } => "random",
            Self::Pathological { .. } => "pathological",
        }
    }

    /// The pieces to keep of these free extents of a group of `group_blocks` blocks.
    ///
    /// # Errors
    /// A length is zero, or the group is too small for the map.
    pub(crate) fn pieces(
        &self,
        free: &[AllocRecord],
        group_blocks: u32,
        random: &mut fastrand::Rng,
    ) -> Result<Vec<AllocRecord>, LabError> {
        let longest = group_blocks.div_ceil(PIECES);
        match *self {
            Self::Random { hole, kept } if hole > 0 && kept > 0 => {
                let mut pieces = Pieces { list: Vec::new(), longest };
                for extent in free {
                    let (mut at, end) = (extent.start.0, extent.start.0 + extent.len);
                    while at < end {
                        at = pieces.keep(at, random.u32(1..=kept), end);
                        at = at.saturating_add(random.u32(1..=hole));
                    }
                }
                Ok(pieces.list)
            }
            Self::Pathological { request, short, long } if request > 1 && long > 0 => {
                // Where the volume keeps its own trees and files free space may have gaps; the
                // longest extent is what a young group has.
                let widest = free.iter().max_by_key(|extent| extent.len);
                let mut pieces = Pieces { list: Vec::new(), longest };
                let extent = widest.ok_or_else(|| too_small(0, 1))?;
                pieces.pathological(*extent, request, short, long, random)?;
                let rest = free.iter().filter(|other| *other != extent);
                rest.for_each(|other| pieces.list.push(*other));
                Ok(pieces.list)
            }
            _ => Err(LabError::Map("lengths of holes and pieces begin at 1, requests at 2".into())),
        }
    }
}

fn too_small(has: u32, needs: u64) -> LabError {
    LabError::Map(format!(
        "a group has {has} free blocks in one piece and the map needs {needs}; choose fewer holes \
         or a larger volume"
    ))
}

/// Pieces to keep, ascending.
struct Pieces {
    list: Vec<AllocRecord>,
    longest: u32,
}

impl Pieces {
    /// Keeps up to `len` blocks from `at`, in pieces that are not too long, but nothing from `end`
    /// on; returns where they end.
    fn keep(&mut self, mut at: u32, len: u32, end: u32) -> u32 {
        let stop = at.saturating_add(len).min(end);
        while at < stop {
            let len = (stop - at).min(self.longest);
            self.list.push(AllocRecord { start: AgBlock(at), len });
            at += len;
        }
        stop
    }

    fn pathological(
        &mut self,
        extent: AllocRecord,
        request: u32,
        short: u32,
        long: u32,
        random: &mut fastrand::Rng,
    ) -> Result<(), LabError> {
        let (mut at, end) = (extent.start.0, extent.start.0 + extent.len);
        let [requests, each] = [short, request].map(u64::from);
        // Before memory is taken for the number of holes given by the user.
        let least = (u64::from(long) * (each + 1)).saturating_add(requests * each + 1);
        if least > u64::from(extent.len) {
            return Err(too_small(extent.len, least));
        }
        let holes: Vec<u32> =
            (0..long).map(|_| random.u32(request..=request.saturating_mul(LONGEST))).collect();
        let far = holes.iter().map(|hole| u64::from(*hole) + 1).sum::<u64>();
        let needs = u64::from(short) * u64::from(request) + far + 1;
        if needs > u64::from(extent.len) {
            return Err(too_small(extent.len, needs));
        }
        for _ in 0..short {
            at = self.keep(at, 1, end) + request - 1;
        }
        // `far` is less than the extent's length.
        let mut at = self.keep(at, (end - at) - far as u32, end);
        for hole in holes {
            at = self.keep(at + hole, 1, end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::random::stream;

    fn holes(free: AllocRecord, pieces: &[AllocRecord]) -> Vec<u32> {
        let (mut at, end) = (free.start.0, free.start.0 + free.len);
        let mut holes = Vec::new();
        for piece in pieces.iter().chain(&[AllocRecord { start: AgBlock(end), len: 0 }]) {
            assert!(piece.start.0 >= at && piece.start.0 + piece.len <= end);
            holes.extend(Some(piece.start.0 - at).filter(|hole| *hole > 0));
            at = piece.start.0 + piece.len;
        }
        holes
    }

    const FREE: AllocRecord = AllocRecord { start: AgBlock(100), len: 100_000 };

    #[test]
    fn random_holes_have_random_lengths_that_the_seed_decides() {
        let map = FreeMap::Random { hole: 56, kept: 17 };
        let pieces = |seed| map.pieces(&[FREE], 1 << 20, &mut stream(seed, 3)).unwrap();
        assert_eq!(pieces(1), pieces(1));
        assert_ne!(pieces(1), pieces(2));
        let holes = holes(FREE, &pieces(1));
        assert!(holes.iter().all(|hole| (1..=56).contains(hole)));
        // 100,000 / (28.5 + 9) blocks.
        assert!((2400..2900).contains(&holes.len()), "{}", holes.len());
        let mean = f64::from(holes.iter().sum::<u32>()) / holes.len() as f64;
        assert!((27.0..30.0).contains(&mean), "{mean}");
        // Records of another version of this program with the same seed are of the same map.
        let first: Vec<(u32, u32)> =
            pieces(1)[..3].iter().map(|piece| (piece.start.0, piece.len)).collect();
        assert_eq!(first, [(100, 17), (135, 17), (190, 9)]);
    }

    #[test]
    fn pathological_holes_are_too_short_and_the_others_far_away() {
        let map = FreeMap::Pathological { request: 8, short: 5000, long: 100 };
        let pieces = map.pieces(&[FREE], 1 << 20, &mut stream(1, 0)).unwrap();
        let holes = holes(FREE, &pieces);
        assert_eq!(holes.len(), 5100);
        assert!(holes[..5000].iter().all(|hole| *hole == 7));
        assert!(holes[5000..].iter().all(|hole| (8..=512).contains(hole)));
        let last = pieces.last().unwrap();
        assert_eq!(last.start.0 + last.len, FREE.start.0 + FREE.len);
    }

    #[test]
    fn maps_that_do_not_fit_are_refused() {
        for map in [
            FreeMap::Pathological { request: 8, short: 50_000, long: 1 },
            FreeMap::Pathological { request: 1, short: 1, long: 1 },
            FreeMap::Random { hole: 0, kept: 1 },
        ] {
            assert!(map.pieces(&[FREE], 1 << 20, &mut stream(1, 0)).is_err(), "{map:?}");
        }
        assert_eq!(FreeMap::random(8_192_000), FreeMap::Random { hole: 5600, kept: 1750 });
    }
}
