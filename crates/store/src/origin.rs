//! Where pieces come from.

use crate::client::Client;
use crate::digest::Digest;
use crate::disk_cache::PIECE;
use crate::error::StoreError;
use std::ops::Range;

/// Most pieces of a fetch. Groups of so many begin at multiples of it, and no fetch is part of two.
pub(crate) const GROUP: u64 = 8;

/// A disk whose pieces are fetched.
pub(crate) trait Origin: Send + Sync {
    /// How messages call it.
    fn name(&self) -> &str;

    /// Its length.
    fn bytes(&self) -> u64;

    /// The store it is in.
    fn client(&self) -> &Client;

    /// Whether a piece is zeroes, without a look at it.
    fn is_zero(&self, piece: u64) -> bool;

    /// What is fetched at least to have a piece.
    fn unit(&self, piece: u64) -> Range<u64>;

    /// How many pieces that nobody asked for come as quickly as one more request is answered; `None` where
    /// each unit has a request of its own.
    fn worth(&self) -> Option<u64>;

    /// What a piece is called in a cache that has pieces of many disks. Equal names are equal pieces.
    fn key(&self, piece: u64) -> Digest;

    /// Fetches pieces of one group, whole units of it, one after the other.
    fn fetch(&self, pieces: Range<u64>) -> Result<Vec<u8>, StoreError>;

    /// Bytes of a piece, of which the last one may have fewer.
    fn piece_length(&self, piece: u64) -> u64 {
        (self.bytes() - piece * PIECE).min(PIECE)
    }

    /// One more than the last piece.
    fn end(&self) -> u64 {
        self.bytes().div_ceil(PIECE)
    }
}
