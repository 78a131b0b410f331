//! What a header says, in either version.

/// Bytes of a key of AES-128 and of AES-256, each twice for XTS.
pub(super) const KEY_BYTES: [usize; 2] = [32, 64];
/// Longest area of a key: 4,000 stripes of 64 bytes are a sixteenth of it.
pub(super) const MAX_AREA: u64 = 4 << 20;
/// The cipher that is read.
pub(super) const CIPHER: &str = "aes-xts-plain64";

/// What keeps a container from being opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// A field that cannot be.
    Damaged(String),
    /// Something that is not read here.
    NotSupported(String),
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) uuid: String,
    pub(super) slots: Vec<Slot>,
    pub(super) segment: Segment,
}

/// A slot that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) derivation: Derivation,
    /// Bytes of the key of its area, and of the key of the volume.
    pub(super) area_key_bytes: usize,
    pub(super) key_bytes: usize,
    /// The key of the volume is spread over so many.
    pub(super) stripes: usize,
    /// How the stripes are mixed.
    pub(super) hash: Hash,
    /// First byte of its area; it is as long as the stripes.
    pub(super) start: u64,
    pub(super) digest: Digest,
}

/// Hashes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
    Sha512,
}

/// How a key is made of a passphrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Derivation {
    Pbkdf2 {
        hash: Hash,
        iterations: u32,
        salt: Vec<u8>,
    },
    Argon2 {
        /// argon2id, else argon2i.
        is_id: bool,
        time: u32,
        /// KiB.
        memory: u32,
        lanes: u32,
        salt: Vec<u8>,
    },
}

/// What tells the right key of the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) hash: Hash,
    pub(super) iterations: u32,
    pub(super) salt: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Where the encrypted sectors are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// First byte on the device.
    pub(super) start: u64,
    /// Bytes; all to the end if it is not said.
    pub(super) length: Option<u64>,
    /// Bytes that are encrypted at once.
    pub(super) sector_bytes: u64,
    /// Added to the number of the sector, in units of 512 bytes.
    pub(super) first_number: u64,
}

impl Hash {
    pub(super) fn of(name: &str) -> Result<Self, Obstacle> {
        match name {
            "sha1" => Ok(Self::Sha1),
            "sha256" => Ok(Self::Sha256),
            "sha512" => Ok(Self::Sha512),
            other => Err(Obstacle::NotSupported(format!("with the hash {}", other.escape_debug()))),
        }
    }
}

/// Fails unless a cipher is the one that is read.
pub(super) fn check_cipher(name: &str) -> Result<(), Obstacle> {
    if name == CIPHER {
        return Ok(());
    }
    Err(Obstacle::NotSupported(format!("encrypted by {}", name.escape_debug())))
}

impl Slot {
    /// Looks at the numbers of a slot, on a device of this many bytes.
    pub(super) fn check(&self, number: &str) -> Result<(), Obstacle> {
        let damaged =
            |what: String| Err(Obstacle::Damaged(format!("key slot {number} has {what}")));
        for bytes in [self.area_key_bytes, self.key_bytes] {
            if !KEY_BYTES.contains(&bytes) {
                return damaged(format!("a key of {bytes} bytes"));
            }
        }
        match self.area_bytes() {
            Some(bytes) if bytes > 0 && bytes <= MAX_AREA => {}
            _ => return damaged(format!("a key in {} stripes", self.stripes)),
        }
        if !self.start.is_multiple_of(512) {
            return damaged(format!("an area that starts at byte {}", self.start));
        }
        Ok(())
    }

    /// Bytes of its area.
    pub(super) fn area_bytes(&self) -> Option<u64> {
        (self.stripes as u64).checked_mul(self.key_bytes as u64)
    }
}
