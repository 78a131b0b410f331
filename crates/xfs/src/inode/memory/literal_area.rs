//! The area of the forks of an inode whose last name is gone, for those who look for removed files
//! (docs/format/removed-files.md#the-inode).

/// The area as a kernel leaves it: as it was when the last name went, and the data fork as it was before
/// its blocks were freed. Both change in steps on the way, which the inode in its place does not show
/// afterwards.
#[derive(Debug)]
pub(crate) struct LiteralArea {
    bytes: Box<[u8]>,
    /// Where the attribute fork began, which named the parents.
    attributes: usize,
}

impl LiteralArea {
    /// The area as it is now, with attributes from this byte on.
    pub(crate) fn new(bytes: &[u8], attributes: usize) -> Self {
        Self { bytes: bytes.into(), attributes }
    }

    /// The area without any content.
    pub(crate) fn wiped(len: usize) -> Self {
        Self { bytes: vec![0; len].into(), attributes: 0 }
    }

    /// Takes over the data fork of the area as it is now.
    pub(crate) fn renew_data(&mut self, bytes: &[u8]) {
        let len = self.attributes.min(bytes.len());
        self.bytes[..len].copy_from_slice(&bytes[..len]);
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
