//! Identifiers in partition tables.

use std::fmt;

/// An identifier as a table holds it: the first three fields of its text form are little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guid(pub [u8; 16]);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in [3, 2, 1, 0, 5, 4, 7, 6].into_iter().chain(8..16) {
            let dash = if matches!(place, 5 | 7 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{:02x}", self.0[place])?;
        }
        Ok(())
    }
}
