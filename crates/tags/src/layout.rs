//! How many bits a word has and how many words there are.

/// Bits of a word, as a power of two, and the number of words, for a capacity.
///
/// Words are as long as 64 bits. They are shortened while four of them would hold more than the
/// capacity, so that small maps still spread over four cache lines; below a capacity of four there
/// is nothing to spread (Linux, `sbitmap_calculate_shift`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// log2 of the bits per word: 0 to 6.
    pub(crate) shift: u32,
    /// Number of words, the last of which may be partly used.
    pub(crate) words: usize,
}

impl Layout {
    /// For `capacity` bits, at least one.
    pub(crate) fn new(capacity: u32) -> Self {
        let mut shift = 6;
        if capacity >= 4 {
            while 4 << shift > capacity {
                shift -= 1;
            }
        }
        Self { shift, words: capacity.div_ceil(1 << shift) as usize }
    }

    /// Bits of a whole word.
    pub(crate) fn bits(self) -> u32 {
        1 << self.shift
    }

    /// The bits of word `index` that lie below `depth`, as a mask.
    pub(crate) fn valid(self, index: usize, depth: u32) -> u64 {
        let first = (index as u64) << self.shift;
        let bits = u64::from(depth).saturating_sub(first).min(u64::from(self.bits()));
        low_bits(bits as u32)
    }
}

/// A mask of the lowest `count` bits, 0 to 64.
pub(crate) fn low_bits(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_maps_spread_over_four_words() {
        for (capacity, shift, words) in [
            (1, 6, 1),
            (3, 6, 1),
            (4, 0, 4),
            (8, 1, 4),
            (63, 3, 8),
            (64, 4, 4),
            (255, 5, 8),
            (256, 6, 4),
            (1000, 6, 16),
            (1_000_000, 6, 15_625),
        ] {
            assert_eq!(Layout::new(capacity), Layout { shift, words }, "capacity {capacity}");
        }
    }

    #[test]
    fn valid_bits_add_up_to_the_depth() {
        for capacity in [1, 2, 5, 64, 100, 1000] {
            let layout = Layout::new(capacity);
            for depth in 1..=capacity {
                let sum: u32 =
                    (0..layout.words).map(|word| layout.valid(word, depth).count_ones()).sum();
                assert_eq!(sum, depth);
            }
        }
    }
}
