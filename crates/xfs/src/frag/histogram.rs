//! Counts in power-of-two buckets.

/// Numbers from `from` to `to`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Least number.
    pub from: u64,
    /// Greatest number.
    pub to: u64,
    /// How many there were.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

/// Buckets 0, 1, 2 to 3, 4 to 7 and so on, as far as there are numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Count and sum, by the number of significant bits.
    slots: Vec<(u64, u64)>,
}

impl Histogram {
    /// Counts a number.
    pub fn add(&mut self, number: u64) {
        let slot = (u64::BITS - number.leading_zeros()) as usize;
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, (0, 0));
        }
        self.slots[slot].0 += 1;
        self.slots[slot].1 += number;
    }

    /// How many numbers were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.slots.iter().map(|(count, _)| count).sum()
    }

    /// Sum of all numbers.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.slots.iter().map(|(_, sum)| sum).sum()
    }

    /// The buckets, ascending, up to the last that is not empty; none is greater than `limit`.
    pub fn buckets(&self, limit: u64) -> impl Iterator<Item = Bucket> + '_ {
        self.slots.iter().zip(0..).map(move |((count, sum), bits)| {
            let from = if bits == 0 { 0 } else { 1 << (bits - 1) };
            let to = if bits == 0 { 0 } else { from + (from - 1) };
            Bucket { from, to: to.min(limit), count: *count, sum: *sum }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fall_into_their_buckets() {
        let mut histogram = Histogram::default();
        for number in [0, 1, 2, 3, 3, 8, u64::MAX] {
            histogram.add(number - u64::from(number == u64::MAX) * (u64::MAX - 15));
        }
        let found: Vec<Bucket> = histogram.buckets(12).collect();
        let bucket = |from, to, count, sum| Bucket { from, to, count, sum };
        assert_eq!(
            found,
            [
                bucket(0, 0, 1, 0),
                bucket(1, 1, 1, 1),
                bucket(2, 3, 3, 8),
                bucket(4, 7, 0, 0),
                bucket(8, 12, 2, 23)
            ]
        );
        assert_eq!((histogram.count(), histogram.sum()), (7, 32));
        let mut last = Histogram::default();
        last.add(u64::MAX);
        assert_eq!(last.buckets(u64::MAX).last().map(|bucket| bucket.to), Some(u64::MAX));
    }
}
