//! An image in chunks.

use crate::client::Client;
use crate::digest::Digest;
use crate::disk_cache::{DiskCache, PIECE};
use crate::error::StoreError;
use crate::location::Reference;
use crate::manifest::{CHUNK_BYTES, MAX_MANIFEST, Manifest};
use crate::origin::Origin;
use crate::repository::Repository;
use std::ops::Range;

/// Pieces of a chunk.
const PIECES: u64 = CHUNK_BYTES / PIECE;

/// An image by its manifest.
pub(crate) struct Chunked {
    repository: Repository,
    name: String,
    manifest: Manifest,
}

impl Chunked {
    pub(crate) fn open(
        client: Client,
        reference: &Reference,
        cache: Option<&DiskCache>,
    ) -> Result<Self, StoreError> {
        let name = client.location().to_string();
        let repository = Repository::new(client);
        let digest = repository.resolve(reference)?;
        let manifest = match cache.and_then(|cache| cached_manifest(cache, &digest)) {
            Some(bytes) => repository.decode(&digest, &bytes)?,
            None => {
                let bytes = repository.manifest_bytes(&digest)?;
                if let Some(cache) = cache {
                    cache_manifest(cache, &digest, &bytes);
                }
                repository.decode(&digest, &bytes)?
            }
        };
        Ok(Self { repository, name, manifest })
    }
}

fn part_of_manifest(digest: &Digest, part: u64) -> Digest {
    Digest::of_parts(&[b"manifest", &digest.0, &part.to_le_bytes()])
}

/// The number of the part that has the length.
const LENGTH: u64 = u64::MAX;

/// A manifest from the cache; what was altered in it has another digest.
fn cached_manifest(cache: &DiskCache, digest: &Digest) -> Option<Vec<u8>> {
    let length = cache.get(&part_of_manifest(digest, LENGTH), 8)?;
    let length = u64::from_le_bytes(length[..].try_into().ok()?);
    if length > MAX_MANIFEST {
        return None;
    }
    let mut bytes = Vec::new();
    for part in 0..length.div_ceil(PIECE) {
        // At most a piece.
        let piece = (length - part * PIECE).min(PIECE) as usize;
        bytes.extend_from_slice(&cache.get(&part_of_manifest(digest, part), piece)?);
    }
    (Digest::of(&bytes) == *digest).then_some(bytes)
}

fn cache_manifest(cache: &DiskCache, digest: &Digest, bytes: &[u8]) {
    let mut parts = bytes.chunks(PIECE as usize).zip(0..);
    let done = parts
        .try_for_each(|(part, number)| cache.put(&part_of_manifest(digest, number), part))
        .and_then(|()| {
            cache.put(&part_of_manifest(digest, LENGTH), &(bytes.len() as u64).to_le_bytes())
        });
    // A cache that cannot be written is told of by those who have more to write.
    drop(done);
}

impl Origin for Chunked {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.manifest.bytes()
    }

    fn client(&self) -> &Client {
        &self.repository.client
    }

    fn is_zero(&self, piece: u64) -> bool {
        self.manifest.chunk(piece / PIECES).is_none()
    }

    fn unit(&self, piece: u64) -> Range<u64> {
        let first = piece / PIECES * PIECES;
        first..(first + PIECES).min(self.end())
    }

    fn worth(&self) -> Option<u64> {
        None
    }

    fn key(&self, piece: u64) -> Digest {
        // Only pieces that are not zeroes are called.
        let digest = self.manifest.chunk(piece / PIECES).unwrap_or(Digest([0; 32]));
        Digest::of_parts(&[b"chunk", &digest.0, &(piece % PIECES).to_le_bytes()])
    }

    fn fetch(&self, pieces: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        for number in pieces.start / PIECES..pieces.end.div_ceil(PIECES) {
            let length = self.manifest.chunk_length(number);
            match self.manifest.chunk(number) {
                Some(digest) => bytes.extend(self.repository.chunk(&digest, length)?),
                None => bytes.resize(bytes.len() + length as usize, 0),
            }
        }
        Ok(bytes)
    }
}
