//! An identity of what is packed: the same for the same entries, wherever they come from.

use super::PackOptions;
use sha2::{Digest, Sha256};
use undercroft_source::{Entry, Kind};

/// Bytes that are digested together: each call has its price, and entries are many short fields.
const TOGETHER: usize = 4096;

/// The entries so far.
pub(super) struct Identity<'a> {
    options: &'a PackOptions,
    digest: Sha256,
    /// What is still to be digested.
    bytes: Vec<u8>,
}

impl<'a> Identity<'a> {
    pub(super) fn new(options: &'a PackOptions) -> Self {
        // What of the options decides the content of the image.
        let PackOptions { size, volume, epoch, .. } = options;
        let bytes = format!("{:?}", (*size, volume.clone(), *epoch)).into_bytes();
        Self { options, digest: Sha256::new(), bytes }
    }

    pub(super) fn finish(mut self) -> [u8; 16] {
        self.digest.update(&self.bytes);
        let digest: [u8; 32] = self.digest.finalize().into();
        let mut identity = [0; 16];
        identity.copy_from_slice(&digest[..16]);
        identity
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        self.field(entry.path.as_bytes());
        // As it will be on the volume: a time that is cut off makes no difference.
        let metadata = self.options.limited(&entry.metadata);
        self.number(u64::from(metadata.mode));
        self.number(u64::from(metadata.uid) << 32 | u64::from(metadata.gid));
        self.number(metadata.mtime.seconds as u64);
        self.number(u64::from(metadata.mtime.nanoseconds));
        match &entry.kind {
            Kind::Directory => self.number(1),
            Kind::Regular { size, data } => {
                self.number(2);
                self.number(*size);
                for range in data {
                    self.number(range.offset);
                    self.number(range.length);
                }
            }
            Kind::Symlink(target) => {
                self.number(3);
                self.field(target);
            }
            Kind::HardLink(first) => {
                self.number(4);
                self.field(first.as_bytes());
            }
            Kind::CharDevice(device) | Kind::BlockDevice(device) => {
                self.number(5 + u64::from(matches!(entry.kind, Kind::BlockDevice(_))));
                self.number(u64::from(device.major) << 32 | u64::from(device.minor));
            }
            Kind::Fifo => self.number(7),
            Kind::Socket => self.number(8),
        }
        for xattr in &entry.xattrs {
            self.field(&xattr.name);
            self.field(&xattr.value);
        }
    }

    fn field(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn number(&mut self, value: u64) {
        if self.bytes.len() >= TOGETHER {
            self.digest.update(&self.bytes);
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
}
