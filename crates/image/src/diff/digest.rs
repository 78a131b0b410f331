//! Digests of contents, of files with several names.

use sha2::{Digest as _, Sha256};
use undercroft_block::is_zero;

/// Bytes that are hashed together.
const BLOCK: usize = 4096;

/// A digest of contents.
pub(super) type Digest = [u8; 32];

/// Computes the digest of data as it comes. Blocks of zeros do not count, so it is the same whether
/// they are data or a hole, and holes cost nothing.
pub(super) struct ContentDigest {
    hasher: Sha256,
    /// The block that is being filled, with its number.
    block: Box<[u8]>,
    number: u64,
}

impl ContentDigest {
    pub(super) fn new() -> Self {
        Self { hasher: Sha256::new(), block: vec![0; BLOCK].into_boxed_slice(), number: 0 }
    }

    /// Takes bytes from `offset` on, behind all before.
    pub(super) fn update(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (number, start) = (offset / BLOCK as u64, (offset % BLOCK as u64) as usize);
            if number != self.number {
                self.close();
                self.number = number;
            }
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - start));
            self.block[start..start + now.len()].copy_from_slice(now);
            (offset, bytes) = (offset + now.len() as u64, later);
        }
    }

    fn close(&mut self) {
        if !is_zero(&self.block) {
            self.hasher.update(self.number.to_le_bytes());
            self.hasher.update(&self.block);
            self.block.fill(0);
        }
    }

    pub(super) fn finish(mut self) -> Digest {
        self.close();
        self.hasher.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(pieces: &[(u64, &[u8])]) -> Digest {
        let mut digest = ContentDigest::new();
        for (offset, bytes) in pieces {
            digest.update(*offset, bytes);
        }
        digest.finish()
    }

    #[test]
    fn pieces_and_holes_do_not_count() {
        let mut bytes = vec![0; 20_000];
        bytes[5000] = 1;
        bytes[19_999] = 2;
        let whole = digest(&[(0, &bytes)]);
        assert_eq!(whole, digest(&[(5000, &[1]), (19_000, &bytes[19_000..])]));
        assert_eq!(whole, digest(&[(0, &bytes[..5001]), (5001, &bytes[5001..])]));
        assert_ne!(whole, digest(&[(5001, &[1]), (19_999, &[2])]));
        assert_ne!(whole, digest(&[(5000, &[1])]));
        assert_eq!(digest(&[]), digest(&[(0, &[0; 9000])]));
    }
}
