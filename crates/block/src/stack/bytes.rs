//! Numbers of bytes in words.

use std::fmt;

/// A number of bytes in the largest unit that leaves it whole.
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("T", 40), ("G", 30), ("M", 20), ("k", 10)];
        let whole = |&(_, shift): &(&str, u32)| self.0 > 0 && self.0.trailing_zeros() >= shift;
        match units.into_iter().find(whole) {
            Some((unit, shift)) => write!(f, "{}{unit}", self.0 >> shift),
            None => self.0.fmt(f),
        }
    }
}
