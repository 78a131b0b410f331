//! A limit on how deep into the map a caller may reach, split over the words.

use crate::layout::{Layout, low_bits};

/// Which bits of each word a caller may take.
///
/// A limit of *n* of a map of depth *d* gives each word a share in proportion to its bits, and the
/// remainder to the first words, so the shares add up to *n* for any number of words. Linux does so
/// since 2025; before, each word had the limit for itself, and a limit of one allowed one tag per
/// word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Every bit.
    All,
    /// The lowest bits of each word.
    Shallow {
        /// Share of a whole word.
        whole: u32,
        /// Words before the last valid one; that one may be shorter.
        whole_words: usize,
        /// Share of the last valid word.
        last: u32,
        /// The first words get one more, this many of them.
        more: usize,
    },
}

impl Reach {
    /// For a limit of `limit` of `depth` bits; the limit ends at the depth.
    pub(crate) fn shallow(layout: Layout, depth: u32, limit: u32) -> Self {
        let share =
            |bits: u32| (u64::from(limit.min(depth)) * u64::from(bits) / u64::from(depth)) as u32;
        let whole_words = ((depth - 1) >> layout.shift) as usize;
        let whole = share(layout.bits());
        let last = share(depth - ((whole_words as u32) << layout.shift));
        let more = (limit.min(depth) - (whole * whole_words as u32 + last)) as usize;
        Self::Shallow { whole, whole_words, last, more }
    }

    /// The bits of word `index` within reach; those beyond the depth are the word's own business.
    #[inline]
    pub(crate) fn mask(self, index: usize) -> u64 {
        match self {
            Self::All => u64::MAX,
            Self::Shallow { whole, whole_words, last, more } => {
                let share = match index {
                    index if index < whole_words => whole,
                    index if index == whole_words => last,
                    _ => return 0,
                };
                low_bits(share + u32::from(index < more))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_limit() {
        for depth in [1, 2, 3, 4, 7, 8, 31, 63, 64, 65, 100, 255, 256, 257, 1000] {
            let layout = Layout::new(depth);
            for limit in 1..=depth {
                let reach = Reach::shallow(layout, depth, limit);
                let sum: u32 = (0..layout.words)
                    .map(|word| (reach.mask(word) & layout.valid(word, depth)).count_ones())
                    .sum();
                assert_eq!(sum, limit, "depth {depth}");
            }
        }
    }

    #[test]
    fn shares_follow_a_resize() {
        let layout = Layout::new(1000);
        for depth in [1, 63, 64, 65, 640, 999] {
            for limit in [1, 3, depth / 2 + 1, depth] {
                let reach = Reach::shallow(layout, depth, limit);
                let sum: u32 = (0..layout.words)
                    .map(|word| (reach.mask(word) & layout.valid(word, depth)).count_ones())
                    .sum();
                assert_eq!(sum, limit.min(depth), "depth {depth}");
            }
        }
    }
}
