//! Digests by which descriptions tell contents.

mod verity;

use sha2::digest::DynDigest;
use std::fmt::Write;
use verity::Verity;

/// How a digest is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// MD5, as old descriptions have it.
    Md5,
    /// SHA-1, likewise.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// That of fs-verity, with SHA-256 over blocks of 4096 bytes.
    Verity,
}

/// All, by their numbers.
const ALGORITHMS: [Algorithm; 6] = [
    Algorithm::Md5,
    Algorithm::Sha1,
    Algorithm::Sha256,
    Algorithm::Sha384,
    Algorithm::Sha512,
    Algorithm::Verity,
];

impl Algorithm {
    /// As messages name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha1 => "SHA-1",
            Self::Sha256 => "SHA-256",
            Self::Sha384 => "SHA-384",
            Self::Sha512 => "SHA-512",
            Self::Verity => "fs-verity",
        }
    }

    fn length(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 | Self::Verity => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// A digest that contents should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) algorithm: Algorithm,
    bytes: Box<[u8]>,
}

impl Digest {
    /// The digest with these hexadecimal digits, if there are as many as it has.
    pub(super) fn parse(algorithm: Algorithm, digits: &[u8]) -> Option<Self> {
        if digits.len() != 2 * algorithm.length() {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = |pair: &[u8]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
        let bytes = digits.chunks_exact(2).map(byte).collect::<Option<_>>()?;
        Some(Self { algorithm, bytes })
    }

    /// Its hexadecimal digits.
    pub(crate) fn digits(&self) -> String {
        let mut text = String::with_capacity(2 * self.bytes.len());
        for byte in &self.bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

/// Digests in one piece of memory: for each the place of its algorithm in [`ALGORITHMS`], then its
/// bytes.
pub(super) fn packed(digests: &[Digest]) -> Vec<u8> {
    let length = digests.iter().map(|digest| 1 + digest.bytes.len()).sum();
    let mut bytes = Vec::with_capacity(length);
    for digest in digests {
        bytes.push(digest.algorithm as u8);
        bytes.extend_from_slice(&digest.bytes);
    }
    bytes
}

/// The digests in a piece of memory.
pub(super) fn unpacked(mut packed: &[u8]) -> Vec<Digest> {
    let mut digests = Vec::new();
    while let Some((number, rest)) = packed.split_first() {
        let algorithm = ALGORITHMS[usize::from(*number)];
        let (bytes, rest) = rest.split_at(algorithm.length());
        digests.push(Digest { algorithm, bytes: bytes.into() });
        packed = rest;
    }
    digests
}

/// Zeros for holes.
static ZEROS: [u8; 4096] = [0; 4096];

/// A digest that is being computed over the data ranges of a file; the holes between count as zeros.
pub(crate) struct Hasher {
    algorithm: Algorithm,
    state: State,
    position: u64,
}

enum State {
    Plain(Box<dyn DynDigest + Send>),
    Verity(Box<Verity>),
}

impl Hasher {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        let state = match algorithm {
            Algorithm::Md5 => State::Plain(Box::<md5::Md5>::default()),
            Algorithm::Sha1 => State::Plain(Box::<sha1::Sha1>::default()),
            Algorithm::Sha256 => State::Plain(Box::<sha2::Sha256>::default()),
            Algorithm::Sha384 => State::Plain(Box::<sha2::Sha384>::default()),
            Algorithm::Sha512 => State::Plain(Box::<sha2::Sha512>::default()),
            Algorithm::Verity => State::Verity(Box::default()),
        };
        Self { algorithm, state, position: 0 }
    }

    /// Takes data at `offset`, which is not before the end of the data that came before.
    pub(crate) fn update(&mut self, offset: u64, bytes: &[u8]) {
        self.skip_to(offset);
        self.put(bytes);
    }

    fn skip_to(&mut self, offset: u64) {
        if let State::Verity(state) = &mut self.state {
            state.zeros(offset - self.position);
            self.position = offset;
        }
        while self.position < offset {
            let length = (offset - self.position).min(ZEROS.len() as u64) as usize;
            self.put(&ZEROS[..length]);
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.position += bytes.len() as u64;
        match &mut self.state {
            State::Plain(state) => state.update(bytes),
            State::Verity(state) => state.update(bytes),
        }
    }

    /// The digest of a file of `size` bytes.
    pub(crate) fn finish(mut self, size: u64) -> Digest {
        self.skip_to(size);
        let bytes = match self.state {
            State::Plain(state) => state.finalize(),
            State::Verity(state) => Box::from(state.finish()),
        };
        Digest { algorithm: self.algorithm, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards_and_holes_are_zeros() {
        // RFC 1321, A.5; FIPS 180-2, appendices A to D.
        for (algorithm, digits) in [
            (Algorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
            (Algorithm::Sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (Algorithm::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ] {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(0, b"a");
            hasher.update(1, b"bc");
            let digest = hasher.finish(3);
            assert_eq!(digest.digits(), digits);
            assert_eq!(Digest::parse(algorithm, digits.as_bytes()), Some(digest));
            assert_eq!(Digest::parse(algorithm, &digits.as_bytes()[1..]), None);
        }
        for algorithm in [Algorithm::Sha384, Algorithm::Sha512, Algorithm::Verity] {
            let (mut sparse, mut full) = (Hasher::new(algorithm), Hasher::new(algorithm));
            sparse.update(70_000, b"x");
            full.update(0, &[0; 70_000]);
            full.update(70_000, b"x");
            full.update(70_001, &[0; 9_999]);
            assert_eq!(sparse.finish(80_000), full.finish(80_000));
        }
    }
}
