//! Identifiers that follow from what the disk holds.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A running digest of what identifiers depend on.
#[derive(Clone)]
pub(super) struct Identity(Sha256);

impl Identity {
    /// The start of all identifiers of a disk with this volume.
    pub(super) fn of_volume(volume: Uuid) -> Self {
        let mut digest = Sha256::new();
        digest.update(b"disk");
        digest.update(volume.as_bytes());
        Self(digest)
    }

    /// Adds bytes, with their number, so that the end of one field is not the start of another.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    /// An identifier for one `purpose`.
    pub(super) fn id(&self, purpose: &str, number: u64) -> Uuid {
        let mut digest = self.clone();
        digest.add(purpose.as_bytes());
        digest.number(number);
        let digest: [u8; 32] = digest.0.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }
}
