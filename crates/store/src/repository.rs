//! A prefix below which images are published: chunks by content, manifests by content, and names.
//!
//! ```text
//! chunks/ab/abcd...     zstd of a chunk, by the SHA-256 of what is in it
//! manifests/0123...     a manifest, by its SHA-256
//! names/NAME            sha256:0123..., a line
//! publishing/..., pruning/...   what is under way (`marker`)
//! ```

use crate::client::{Client, Put, Version};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::location::Reference;
use crate::manifest::{CHUNK_BYTES, MAX_MANIFEST, Manifest, ManifestError};
use object_store::path::Path;
use std::io::Read;

/// Longest object of a chunk: what zstd makes of bytes that cannot be compressed is a little longer.
const MAX_STORED: u64 = CHUNK_BYTES + (64 << 10);
/// Longest object of a name.
const MAX_NAME: u64 = 4096;

/// A prefix of a store with images.
#[derive(Debug)]
pub struct Repository {
    pub(crate) client: Client,
    prefix: Path,
}

impl Repository {
    /// The prefix that a client is for.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let prefix = client.location().path.clone();
        Self { client, prefix }
    }

    /// Where it is, without a name.
    pub(crate) fn uri(&self) -> String {
        self.client.location().base()
    }

    pub(crate) fn path(&self, parts: &[&str]) -> Path {
        parts.iter().fold(self.prefix.clone(), |path, part| path.join(*part))
    }

    pub(crate) fn chunk_path(&self, digest: &Digest) -> Path {
        let name = digest.to_string();
        self.path(&["chunks", &name[..2], &name])
    }

    pub(crate) fn manifest_path(&self, digest: &Digest) -> Path {
        self.path(&["manifests", &digest.to_string()])
    }

    pub(crate) fn name_path(&self, name: &str) -> Path {
        self.path(&["names", name])
    }

    /// The digest that a reference stands for now.
    ///
    /// # Errors
    /// There is no such name, or the store does not answer.
    pub fn resolve(&self, reference: &Reference) -> Result<Digest, StoreError> {
        match reference {
            Reference::Pinned(digest) => Ok(*digest),
            Reference::Name(name) => self.named(name).map(|(digest, _)| digest),
        }
    }

    /// All names, in their order.
    ///
    /// # Errors
    /// The store does not list them.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        self.last_parts("names")
    }

    /// The digests of all manifests.
    ///
    /// # Errors
    /// The store does not list them.
    pub fn manifests(&self) -> Result<Vec<Digest>, StoreError> {
        let names = self.last_parts("manifests")?;
        Ok(names.iter().filter_map(|name| Digest::from_hex(name)).collect())
    }

    fn last_parts(&self, directory: &str) -> Result<Vec<String>, StoreError> {
        let all = self.client.list(&self.path(&[directory]))?;
        let parts = all.iter().filter_map(|(path, _)| path.filename().map(str::to_owned));
        let mut parts: Vec<_> = parts.collect();
        parts.sort_unstable();
        Ok(parts)
    }

    /// What has a name, and the version of that object.
    pub(crate) fn named(&self, name: &str) -> Result<(Digest, Version), StoreError> {
        let path = self.name_path(name);
        let part = self.client.whole(&path, MAX_NAME)?;
        let text = str::from_utf8(&part.bytes).ok().map(str::trim_end);
        let digest = text.and_then(|text| Digest::from_hex(text.strip_prefix("sha256:")?));
        match digest {
            Some(digest) => Ok((digest, part.version)),
            None => Err(StoreError::Manifest {
                object: self.client.name(&path),
                error: ManifestError::Format("it is no line with a digest".into()),
            }),
        }
    }

    /// The bytes of a manifest, which have its digest.
    pub(crate) fn manifest_bytes(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let path = self.manifest_path(digest);
        let bytes = self.client.whole(&path, MAX_MANIFEST)?.bytes;
        let found = Digest::of(&bytes);
        if found != *digest {
            let error = ManifestError::Altered(found);
            return Err(StoreError::Manifest { object: self.client.name(&path), error });
        }
        Ok(bytes)
    }

    /// A manifest.
    ///
    /// # Errors
    /// It is not there, is altered, or of another version.
    pub fn manifest(&self, digest: &Digest) -> Result<Manifest, StoreError> {
        self.decode(digest, &self.manifest_bytes(digest)?)
    }

    pub(crate) fn decode(&self, digest: &Digest, bytes: &[u8]) -> Result<Manifest, StoreError> {
        Manifest::decode(bytes).map_err(|error| {
            let object = self.client.name(&self.manifest_path(digest));
            StoreError::Manifest { object, error }
        })
    }

    /// The content of a chunk of this length, as it was published.
    pub(crate) fn chunk(&self, digest: &Digest, length: u64) -> Result<Vec<u8>, StoreError> {
        let path = self.chunk_path(digest);
        let stored = match self.client.whole(&path, MAX_STORED) {
            Ok(part) => part.bytes,
            Err(error) if error.is_missing() => {
                let object = self.client.name(&path);
                return Err(StoreError::MissingChunk { digest: *digest, object });
            }
            Err(error) => return Err(error),
        };
        unpack(&stored, digest, length).map_err(|why| {
            let object = self.client.name(&path);
            StoreError::AlteredChunk { digest: *digest, why, object }
        })
    }

    pub(crate) fn put_chunk(&self, digest: &Digest, content: &[u8]) -> Result<(), StoreError> {
        let packed = zstd::bulk::compress(content, LEVEL)
            .map_err(|error| StoreError::local("cannot compress a chunk", &error))?;
        self.client.put(&self.chunk_path(digest), packed, Put::Any)
    }
}

/// As quick as a network, and most of what higher levels gain.
const LEVEL: i32 = 3;

/// The content of a chunk from what is stored, which may be anything.
pub(crate) fn unpack(stored: &[u8], digest: &Digest, length: u64) -> Result<Vec<u8>, String> {
    let decoder = zstd::Decoder::new(stored).map_err(|error| error.to_string())?;
    let mut content = Vec::new();
    // One byte more tells of those that are too many.
    let read = decoder.take(length + 1).read_to_end(&mut content);
    read.map_err(|error| format!("it cannot be decompressed: {error}"))?;
    if content.len() as u64 != length {
        return Err(format!("it has not the {length} bytes of the chunk"));
    }
    if Digest::of(&content) != *digest {
        return Err("its content has another digest".into());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_unpacked_if_they_are_what_they_should_be() {
        let content = vec![7; 10_000];
        let digest = Digest::of(&content);
        let stored = zstd::bulk::compress(&content, LEVEL).unwrap();
        assert_eq!(unpack(&stored, &digest, 10_000), Ok(content.clone()));
        for (stored, length, why) in [
            (&stored[..], 9_999, "not the 9999 bytes"),
            (&stored[..], 10_001, "not the 10001 bytes"),
            (&stored[..stored.len() - 1], 10_000, "cannot be decompressed"),
            (&b"no zstd"[..], 10_000, "cannot be decompressed"),
            (&zstd::bulk::compress(&[8; 10_000], LEVEL).unwrap(), 10_000, "another digest"),
        ] {
            let error = unpack(stored, &digest, length).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
