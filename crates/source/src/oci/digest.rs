//! Digests, by which an image names its parts.

use crate::region::Region;
use serde::Deserialize;
use sha2::{Digest as _, Sha256, Sha512};
use std::fmt;
use std::io;

/// Bytes that are hashed at a time: they stay in the caches of a processor.
const PIECE: usize = 256 * 1024;
/// Bytes in front of them that are not used.
const FRONT: usize = 64;

/// A digest in its text form, `sha256:` or `sha512:` and hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest {
    text: String,
    algorithm: Algorithm,
}

/// How a digest is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Algorithm {
    Sha256,
    Sha512,
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

impl Digest {
    /// The digest that `text` is.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (algorithm, digits) = text.split_once(':')?;
        let algorithm = match algorithm {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => return None,
        };
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let sound = digits.len() == algorithm.digits() && digits.bytes().all(is_digit);
        sound.then(|| Self { text: text.to_owned(), algorithm })
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The SHA-256 with these bytes.
    pub(super) fn sha256(bytes: [u8; 32]) -> Self {
        Self::of_bytes(Algorithm::Sha256, &bytes)
    }

    pub(super) fn is_sha256(&self) -> bool {
        self.algorithm == Algorithm::Sha256
    }

    fn of_bytes(algorithm: Algorithm, bytes: &[u8]) -> Self {
        let mut text = format!("{}:", algorithm.name());
        for byte in bytes {
            text.push_str(&format!("{byte:02x}"));
        }
        Self { text, algorithm }
    }

    /// Where an image layout has the blob.
    pub(super) fn blob_path(&self) -> String {
        format!("blobs/{}", self.text.replacen(':', "/", 1))
    }

    /// The digest of a region by the same algorithm. `go_on` is asked now and then.
    pub(super) fn compute(
        &self,
        region: &Region,
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<Option<Self>> {
        // Long memory of malloc begins 16 bytes behind a page, where some processors copy slowly to from
        // the beginning of one.
        let (mut hasher, mut memory) = (self.hasher(), vec![0; FRONT + PIECE]);
        let buffer = &mut memory[FRONT..];
        let mut position = 0;
        while go_on() {
            let count = region.read_at(buffer, position)?;
            if count == 0 {
                return Ok(Some(hasher.finish()));
            }
            hasher.update(&buffer[..count]);
            position += count as u64;
        }
        Ok(None)
    }

    /// A hasher that gives digests of the same kind.
    pub(super) fn hasher(&self) -> Hasher {
        match self.algorithm {
            Algorithm::Sha256 => Hasher::Sha256(Sha256::new()),
            Algorithm::Sha512 => Hasher::Sha512(Sha512::new()),
        }
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| {
            let shown: String = text.chars().take(150).collect();
            format!("\"{}\" is no sha256 or sha512 digest", shown.escape_default())
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// A digest that is being computed.
pub(super) enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    pub(super) fn finish(self) -> Digest {
        match self {
            Self::Sha256(hasher) => Digest::sha256(hasher.finalize().into()),
            Self::Sha512(hasher) => Digest::of_bytes(Algorithm::Sha512, &hasher.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        // FIPS 180-2, appendix B.1 and C.1.
        let one = Digest::parse(
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        );
        let other = Digest::parse(
            "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        );
        for digest in [one.unwrap(), other.unwrap()] {
            let mut hasher = digest.hasher();
            hasher.update(b"a");
            hasher.update(b"bc");
            assert_eq!(hasher.finish(), digest);
        }
    }

    #[test]
    fn what_is_no_digest_names_no_file() {
        let digits = "0".repeat(64);
        for text in ["", "sha256:", "sha256:../../etc/passwd", "md5:00", &digits] {
            assert_eq!(Digest::parse(text), None, "{text}");
        }
        assert_eq!(Digest::parse(&format!("sha256:{}G", &digits[1..])), None);
        assert!(Digest::parse(&format!("sha256:{digits}")).is_some());
    }
}
