//! An object that is a disk as it is.

use crate::client::{Client, Part, Version};
use crate::digest::Digest;
use crate::disk_cache::PIECE;
use crate::error::StoreError;
use crate::origin::{GROUP, Origin};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An object, in the version that it had when it was opened.
pub(crate) struct Whole {
    client: Client,
    name: String,
    version: Version,
    /// By which pieces of this version are called.
    identity: Digest,
    pace: Pace,
}

/// How long a store takes: until the first byte, and for those behind it.
#[derive(Default)]
struct Pace {
    /// In microseconds.
    first_byte: AtomicU64,
    /// For a piece, in microseconds.
    piece: AtomicU64,
}

impl Pace {
    fn count(&self, part: &Part) {
        let mean = |of: &AtomicU64, time: Duration| {
            let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
            // Of several at once some may be lost.
            let before = of.load(Ordering::Relaxed);
            let mean = if before == 0 { time } else { (before * 7 + time) / 8 };
            of.store(mean.max(1), Ordering::Relaxed);
        };
        mean(&self.first_byte, part.first_byte);
        if part.bytes.len() as u64 >= PIECE {
            // A whole piece at least, and no more than a group.
            mean(&self.piece, part.transfer / (part.bytes.len() as u64 / PIECE) as u32);
        }
    }

    /// Pieces that come in the time until a first byte comes.
    fn worth(&self) -> u64 {
        let piece = self.piece.load(Ordering::Relaxed).max(1);
        (self.first_byte.load(Ordering::Relaxed) / piece).min(GROUP)
    }
}

impl Whole {
    /// Opens an object by a look at its first `ahead` bytes, which are returned.
    pub(crate) fn open(client: Client, ahead: u64) -> Result<(Self, Vec<u8>), StoreError> {
        let path = client.location().path.clone();
        let name = client.location().to_string();
        let part = client.part(&path, 0..ahead.max(1), None)?;
        let version = part.version.clone();
        let (bytes, modified) = (version.bytes.to_le_bytes(), version.modified.to_le_bytes());
        let tag = version.tag.clone().unwrap_or_default();
        let place = Digest::of(name.as_bytes());
        let tag = Digest::of(tag.as_bytes());
        let identity = Digest::of_parts(&[b"object", &place.0, &tag.0, &bytes, &modified]);
        let pace = Pace::default();
        pace.count(&part);
        Ok((Self { client, name, version, identity, pace }, part.bytes))
    }
}

impl Origin for Whole {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.version.bytes
    }

    fn client(&self) -> &Client {
        &self.client
    }

    fn is_zero(&self, _piece: u64) -> bool {
        false
    }

    fn unit(&self, piece: u64) -> Range<u64> {
        piece..piece + 1
    }

    fn worth(&self) -> Option<u64> {
        Some(self.pace.worth())
    }

    fn key(&self, piece: u64) -> Digest {
        Digest::of_parts(&[&self.identity.0, &piece.to_le_bytes()])
    }

    fn fetch(&self, pieces: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let end = (pieces.end * PIECE).min(self.version.bytes);
        let range = pieces.start * PIECE..end;
        let part = self.client.part(&self.client.location().path, range, Some(&self.version))?;
        self.pace.count(&part);
        Ok(part.bytes)
    }
}
