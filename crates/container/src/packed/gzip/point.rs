//! A place in a member at which a decoder can begin.

/// Bytes to which what follows may refer.
pub(super) const WINDOW: usize = 32 << 10;

/// A place at which a decoder can begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// Where it is in the disk.
    pub(super) start: u64,
    /// The first byte in the file that was not read.
    pub(super) at: u64,
    /// Bits that were read and not used, and how many.
    pub(super) bits: u8,
    pub(super) bit_buffer: u8,
    /// What is before it; without, a member begins here.
    pub(super) window: Option<Box<[u8; WINDOW]>>,
}
