//! Manifests: which chunks an image has.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes of a chunk; the last one of an image may be shorter.
pub const CHUNK_BYTES: u64 = 4 << 20;

/// What the first field of a manifest says.
const FORMAT: &str = "undercroft-image";
/// The version that is written and read.
const VERSION: u64 = 1;
/// Longest image, 1 PiB: more chunks than fit a manifest.
const MAX_BYTES: u64 = 1 << 50;

/// Longest manifest. One of 3 TB of data is as long.
pub(crate) const MAX_MANIFEST: u64 = 64 << 20;

/// What an image in chunks consists of. Chunks that it does not name are zeroes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    bytes: u64,
    /// Number and content of each chunk, ascending.
    chunks: Vec<(u64, Digest)>,
}

/// Why some bytes are no manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// They are of another format.
    #[error("it is no manifest of an image: {0}")]
    Format(String),
    /// They are of another version.
    #[error("it is a manifest of version {0}, of which this program knows only {VERSION}")]
    Version(u64),
    /// A field cannot be.
    #[error("{field} of the manifest cannot be {found}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What it holds.
        found: String,
    },
    /// It has not the digest that it was asked for by.
    #[error("it was altered: its digest is sha256:{0}")]
    Altered(Digest),
}

/// What all versions have.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    version: u64,
    bytes: u64,
    chunk_bytes: u64,
    chunks: Vec<(u64, String)>,
}

impl Manifest {
    /// An image of so many bytes with these chunks.
    ///
    /// # Errors
    /// Chunks do not ascend, or are behind the end; the image has no bytes or too many.
    pub fn new(bytes: u64, chunks: Vec<(u64, Digest)>) -> Result<Self, ManifestError> {
        let wrong = |field, found: String| Err(ManifestError::Field { field, found });
        if bytes == 0 || bytes > MAX_BYTES || !bytes.is_multiple_of(512) {
            return wrong("bytes", bytes.to_string());
        }
        let mut next = 0;
        for (number, _) in &chunks {
            if *number < next || *number >= bytes.div_ceil(CHUNK_BYTES) {
                return wrong("the number of a chunk", number.to_string());
            }
            next = number + 1;
        }
        Ok(Self { bytes, chunks })
    }

    /// From the bytes of an object, which may be anyone's.
    ///
    /// # Errors
    /// They are no manifest of a version that is known, or one that cannot be.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        let format = |error: serde_json::Error| ManifestError::Format(error.to_string());
        let head: Head = serde_json::from_slice(bytes).map_err(format)?;
        if head.format != FORMAT {
            let name: String = head.format.chars().take(40).collect();
            return Err(ManifestError::Format(format!("its format is {name:?}")));
        }
        if head.version != VERSION {
            return Err(ManifestError::Version(head.version));
        }
        let document: Document = serde_json::from_slice(bytes).map_err(format)?;
        if document.chunk_bytes != CHUNK_BYTES {
            let found = document.chunk_bytes.to_string();
            return Err(ManifestError::Field { field: "chunk_bytes", found });
        }
        let chunks = document.chunks.into_iter().map(|(number, text)| {
            let digest = Digest::from_hex(&text).ok_or_else(|| {
                let found = format!("{:?}", text.chars().take(80).collect::<String>());
                ManifestError::Field { field: "the digest of a chunk", found }
            });
            Ok((number, digest?))
        });
        Self::new(document.bytes, chunks.collect::<Result<_, _>>()?)
    }

    /// The bytes of the object.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let chunks = self.chunks.iter().map(|(number, digest)| (*number, digest.to_string()));
        let document = Document {
            format: FORMAT.to_owned(),
            version: VERSION,
            bytes: self.bytes,
            chunk_bytes: CHUNK_BYTES,
            chunks: chunks.collect(),
        };
        let mut bytes = serde_json::to_vec(&document).expect("numbers and text are always JSON");
        bytes.push(b'\n');
        bytes
    }

    /// Bytes of the image.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number and content of each chunk that is not zeroes, ascending.
    #[must_use]
    pub fn chunks(&self) -> &[(u64, Digest)] {
        &self.chunks
    }

    /// The content of a chunk; `None` if it is zeroes.
    #[must_use]
    pub fn chunk(&self, number: u64) -> Option<Digest> {
        let found = self.chunks.binary_search_by_key(&number, |(number, _)| *number);
        found.ok().map(|index| self.chunks[index].1)
    }

    /// Bytes of a chunk.
    pub(crate) const fn chunk_length(&self, number: u64) -> u64 {
        let rest = self.bytes - number * CHUNK_BYTES;
        if rest < CHUNK_BYTES { rest } else { CHUNK_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_read_as_they_were_written() {
        let chunks = vec![(0, Digest::of(b"a")), (3, Digest::of(b"b"))];
        let manifest = Manifest::new(3 * CHUNK_BYTES + 512, chunks).unwrap();
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest.clone()));
        assert_eq!(manifest.chunk(3), Some(Digest::of(b"b")));
        assert_eq!((manifest.chunk(1), manifest.chunk_length(3)), (None, 512));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let good = String::from_utf8(
            Manifest::new(CHUNK_BYTES, vec![(0, Digest::of(b"a"))]).unwrap().encode(),
        )
        .unwrap();
        for (from, to, why) in [
            ("\"version\":1", "\"version\":2", "version 2"),
            ("undercroft-image", "tar", "format is \"tar\""),
            ("\"bytes\":4194304", "\"bytes\":1", "bytes of the manifest cannot be 1"),
            ("\"bytes\":4194304", "\"bytes\":18446744073709551104", "cannot be 1844"),
            ("\"chunk_bytes\":4194304", "\"chunk_bytes\":0", "chunk_bytes"),
            ("[[0,", "[[1,", "number of a chunk"),
            ("[[0,\"ca", "[[0,\"CA", "digest of a chunk"),
            ("\"chunks\"", "\"signature\":1,\"chunks\"", "unknown field"),
            ("}", "", "EOF"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good, "{from}");
            let error = Manifest::decode(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{from} {to}: {error}");
        }
    }
}
