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

/// Bytes: a number with an optional suffix. K, M, G, T with or without "iB" are powers of 1024.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(format!("{suffix:?} is no unit; write a number and k, M, G or T")),
    };
    let number: u64 =
        number.parse().map_err(|_| format!("{text:?} is no size; write one such as 64k"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is more than 2^64 bytes"))
}
