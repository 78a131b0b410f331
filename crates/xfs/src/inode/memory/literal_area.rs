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
    /// The size of the file.
    size: u64,
}

impl LiteralArea {
    /// The area as it is now, with attributes from this byte on, of a file of this size.
    pub(crate) fn new(bytes: &[u8], attributes: usize, size: u64) -> Self {
        Self { bytes: bytes.into(), attributes, size }
    }

    /// The area without any content.
    pub(crate) fn wiped(len: usize) -> Self {
        Self { bytes: vec![0; len].into(), attributes: 0, size: 0 }
    }

    /// Takes over the data fork of the area, and the size, as they are now. A wiped area has none.
    pub(crate) fn renew_data(&mut self, bytes: &[u8], size: u64) {
        let len = self.attributes.min(bytes.len());
        self.bytes[..len].copy_from_slice(&bytes[..len]);
        if len > 0 {
            self.size = size;
        }
    }

    /// The size that the free inode keeps.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
