//! The digest of fs-verity: of a Merkle tree over the blocks of a file.
//!
//! SHA-256, blocks of 4096 bytes, no salt, as composefs(5) has it. A block of the tree holds the digests
//! of 128 blocks below it; the last of each level is filled up with zeros. The root is the digest of the
//! only block of the top level, or of the file where it has one block. The digest of the file is that
//! of a descriptor with the size and the root.

use sha2::{Digest as _, Sha256};

const BLOCK_LOG: u8 = 12;
const BLOCK: usize = 1 << BLOCK_LOG;
/// Bytes of a digest.
const DIGEST: usize = 32;
/// Digests in a block of the tree.
const FANOUT: u64 = (BLOCK / DIGEST) as u64;
/// Bytes of the descriptor.
const DESCRIPTOR: usize = 256;

/// A tree that is being computed.
#[derive(Default)]
pub(super) struct Verity {
    size: u64,
    /// The last block of the file, as far as it has come; it is never full.
    block: Vec<u8>,
    /// The last block of each level, from the bottom up; none is full.
    levels: Vec<Vec<u8>>,
}

impl Verity {
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        self.size += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK {
                self.finish_block();
            }
        }
    }

    /// Takes zeros. Whole subtrees of them have digests that are known, so a hole of any length is quick.
    pub(super) fn zeros(&mut self, mut count: u64) {
        let rest = (BLOCK - self.block.len()) % BLOCK;
        let first = (rest as u64).min(count);
        self.update(&[0; BLOCK][..first as usize]);
        count -= first;
        self.size += count / BLOCK as u64 * BLOCK as u64;
        self.push_zeros(count / BLOCK as u64);
        self.update(&[0; BLOCK][..(count % BLOCK as u64) as usize]);
    }

    /// Adds blocks of zeros at the end of a block.
    fn push_zeros(&mut self, mut blocks: u64) {
        // The digest of a subtree of zeros, by its level.
        let mut known = vec![digest_of_block(&mut Vec::new())];
        while blocks > 0 {
            let (mut level, mut span) = (0, 1);
            while self.levels.get(level).is_none_or(Vec::is_empty) && blocks >= span * FANOUT {
                (level, span) = (level + 1, span * FANOUT);
                if known.len() == level {
                    known.push(digest_of_block(&mut known[level - 1].repeat(FANOUT as usize)));
                }
            }
            self.push(level, &known[level]);
            blocks -= span;
        }
    }

    fn finish_block(&mut self) {
        let digest = digest_of_block(&mut self.block);
        self.push(0, &digest);
    }

    /// Adds the digest of a block to a level.
    fn push(&mut self, level: usize, digest: &[u8; DIGEST]) {
        if level >= self.levels.len() {
            self.levels.resize(level + 1, Vec::new());
        }
        self.levels[level].extend_from_slice(digest);
        if self.levels[level].len() == BLOCK {
            let digest = digest_of_block(&mut self.levels[level]);
            self.push(level + 1, &digest);
        }
    }

    fn root(&mut self) -> [u8; DIGEST] {
        if !self.block.is_empty() {
            self.finish_block();
        }
        let mut level = 0;
        while level < self.levels.len() {
            let is_top = level + 1 == self.levels.len();
            match <[u8; DIGEST]>::try_from(&self.levels[level][..]) {
                Ok(root) if is_top => return root,
                _ if self.levels[level].is_empty() => {}
                _ => {
                    let digest = digest_of_block(&mut self.levels[level]);
                    self.push(level + 1, &digest);
                }
            }
            level += 1;
        }
        // An empty file has no tree.
        [0; DIGEST]
    }

    /// The digest of the file.
    pub(super) fn finish(mut self) -> [u8; DIGEST] {
        let root = self.root();
        let mut descriptor = [0; DESCRIPTOR];
        // Version, algorithm, size of blocks.
        descriptor[..3].copy_from_slice(&[1, 1, BLOCK_LOG]);
        descriptor[8..16].copy_from_slice(&self.size.to_le_bytes());
        descriptor[16..16 + DIGEST].copy_from_slice(&root);
        Sha256::digest(descriptor).into()
    }
}

/// The digest of a block that is filled up with zeros; the block is empty then.
fn digest_of_block(block: &mut Vec<u8>) -> [u8; DIGEST] {
    block.resize(BLOCK, 0);
    let digest = Sha256::digest(&block);
    block.clear();
    digest.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_count_as_if_they_were_data() {
        for before in [0, 1, 4095, 4096, 5 * 4096, 127 * 4096] {
            for zeros in [0, 1, 4096, 4097, 128 * 4096, 300 * 4096 + 5, 128 * 128 * 4096 + 4096] {
                let (mut quick, mut slow) = (Verity::default(), Verity::default());
                for verity in [&mut quick, &mut slow] {
                    verity.update(&vec![7; before]);
                }
                quick.zeros(zeros);
                slow.update(&vec![0; zeros as usize]);
                for verity in [&mut quick, &mut slow] {
                    verity.update(b"end");
                }
                assert_eq!(quick.finish(), slow.finish(), "{before} {zeros}");
            }
        }
    }

    #[test]
    fn the_largest_hole_is_quick() {
        let mut verity = Verity::default();
        verity.zeros(i64::MAX as u64);
        assert_eq!(verity.size, i64::MAX as u64);
        assert!(verity.levels.len() < 10);
        verity.finish();
    }
}
