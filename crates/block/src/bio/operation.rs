//! What bios and requests do.

use std::fmt;

/// The operation of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Fills the bio's buffer from the device.
    Read,
    /// Stores the bio's segments on the device.
    Write,
    /// Makes every write that completed or was submitted before durable. Covers no sectors.
    Flush,
    /// Tells the device that the contents are not needed; what a later read returns is unspecified.
    Discard,
    /// Makes the sectors read as zeroes, without carrying zeroes.
    WriteZeroes,
    /// Makes the sectors share the blocks of a file, without carrying bytes. Only devices over files
    /// may have it, and not for every range: the others fail, and the caller writes the bytes.
    CloneRange,
}

impl Operation {
    /// Whether the operation changes the contents of the device.
    #[must_use]
    pub const fn modifies(self) -> bool {
        matches!(self, Self::Write | Self::Discard | Self::WriteZeroes | Self::CloneRange)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::WriteZeroes => "write of zeroes",
            Self::CloneRange => "clone of a range",
        })
    }
}
