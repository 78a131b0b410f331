//! Errors of requests, as numbers that are the same on all systems.

use std::fmt;

/// The error of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
#[non_exhaustive]
pub enum WireError {
    /// Operation not permitted, as a write to a read-only export.
    NotPermitted = 1,
    /// Input or output error.
    Io = 5,
    /// No memory.
    NoMemory = 12,
    /// Invalid request.
    Invalid = 22,
    /// No space left.
    NoSpace = 28,
    /// The request is too large.
    Overflow = 75,
    /// Not supported, as zeroes that would not be fast.
    NotSupported = 95,
    /// The server shuts down.
    Shutdown = 108,
}

impl WireError {
    /// The error with this number, none for zero. Unknown numbers count as [`Self::Invalid`], as the
    /// protocol demands.
    pub fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => return None,
            1 => Self::NotPermitted,
            5 => Self::Io,
            12 => Self::NoMemory,
            28 => Self::NoSpace,
            75 => Self::Overflow,
            95 => Self::NotSupported,
            108 => Self::Shutdown,
            _ => Self::Invalid,
        })
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => "operation not permitted",
            Self::Io => "input/output error",
            Self::NoMemory => "no memory",
            Self::Invalid => "invalid request",
            Self::NoSpace => "no space left",
            Self::Overflow => "request too large",
            Self::NotSupported => "not supported",
            Self::Shutdown => "the server shuts down",
        })
    }
}
