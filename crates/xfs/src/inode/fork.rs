//! One fork of an inode: its content, or where its content is.

use super::ExtentList;
use crate::bytes::{be32, put_be32};
use crate::format::{BmapRoot, DeviceNumber, Extent, ForkFormat, InodeCore};
use crate::geometry::Geometry;
use crate::units::AgNumber;
use std::sync::OnceLock;

/// Which of the two forks of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkKind {
    /// Data, directory entries, link target, device.
    Data,
    /// Extended attributes.
    Attr,
}

/// A fork.
#[derive(Clone, Debug)]
pub struct Fork {
    /// Its content.
    pub content: ForkContent,
    /// Where its blocks are. A tree is read at first use; a fork that has none has no blocks else.
    pub(crate) extents: OnceLock<ExtentList>,
    /// The groups that its blocks and those of its tree are in, ascending, once they were asked
    /// for. New blocks add theirs, freed ones take none away: a large directory has thousands of
    /// extents, and no change of it may cost a look at all.
    pub(crate) groups: OnceLock<Vec<AgNumber>>,
}

/// The content of a fork inside the inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkContent {
    /// A device number (devices), or nothing of meaning (FIFOs, sockets).
    Device(DeviceNumber),
    /// The content itself.
    Local(Vec<u8>),
    /// The list of extents.
    Extents,
    /// The root of the mapping tree, and the number of its records.
    Btree(BmapRoot, u64),
}

impl Fork {
    /// A fork without content.
    #[must_use]
    pub fn empty() -> Self {
        Self::of(ForkContent::Extents)
    }

    /// A fork that holds its content in the inode.
    #[must_use]
    pub fn local(content: Vec<u8>) -> Self {
        Self::of(ForkContent::Local(content))
    }

    /// The data fork of a special file.
    #[must_use]
    pub fn device(device: DeviceNumber) -> Self {
        Self::of(ForkContent::Device(device))
    }

    fn of(content: ForkContent) -> Self {
        // Most new forks get no blocks, and to fill the cell costs as much as a search of a tree.
        Self::with(content, OnceLock::new())
    }

    fn with(content: ForkContent, extents: OnceLock<ExtentList>) -> Self {
        Self { content, extents, groups: OnceLock::new() }
    }

    /// Decodes a fork of a verified core from the bytes of its inode; the error names the defect.
    pub(crate) fn decode(
        core: &InodeCore,
        kind: ForkKind,
        inode: &[u8],
        geometry: &Geometry,
    ) -> Result<Self, String> {
        let (format, count, range) = match kind {
            ForkKind::Data => (core.data_format, core.data_extents, core.data_fork(geometry)),
            ForkKind::Attr => {
                (core.attr_format, core.attr_extents.into(), core.attr_fork(geometry))
            }
        };
        let bytes = inode.get(range).ok_or("the forks overlap")?;
        match format {
            ForkFormat::Dev => {
                let raw = bytes.get(..4).ok_or("no room for the device number")?;
                Ok(Self::device(DeviceNumber::decode(be32(raw, 0))))
            }
            ForkFormat::Local => Ok(Self::local(local_bytes(core, kind, bytes)?.to_vec())),
            ForkFormat::Extents => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let end = count.checked_mul(Extent::LEN).filter(|end| *end <= bytes.len());
                let records = &bytes[..end.ok_or("more extents than the fork has room for")?];
                let extents = ExtentList::decode(records.chunks_exact(Extent::LEN), geometry)?;
                Ok(Self::with(ForkContent::Extents, OnceLock::from(extents)))
            }
            ForkFormat::Btree => {
                let root = BmapRoot::decode(bytes).map_err(|defect| defect.to_string())?;
                Ok(Self::with(ForkContent::Btree(root, count), OnceLock::new()))
            }
            ForkFormat::Uuid | ForkFormat::MetaBtree => {
                // Trees of realtime groups: known to exist, never followed.
                Ok(Self::local(bytes.to_vec()))
            }
        }
    }

    /// Where its blocks are, as far as that is known: of a tree that was not read, nothing.
    pub(crate) fn known_extents(&self) -> &ExtentList {
        self.extents.get().unwrap_or(ExtentList::none())
    }

    /// Blocks of this group have become part of the fork or of its tree.
    pub(crate) fn add_group(&mut self, ag: AgNumber) {
        if let Some(groups) = self.groups.get_mut()
            && let Err(place) = groups.binary_search(&ag)
        {
            groups.insert(place, ag);
        }
    }

    /// Writes the fork into its part of the inode.
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        let used = match &self.content {
            ForkContent::Device(device) => {
                put_be32(bytes, 0, device.encode().unwrap_or(0));
                4
            }
            ForkContent::Local(content) => {
                bytes[..content.len()].copy_from_slice(content);
                content.len()
            }
            ForkContent::Extents => {
                let extents = self.known_extents().as_slice();
                for (extent, out) in extents.iter().zip(bytes.chunks_exact_mut(Extent::LEN)) {
                    extent.encode(out);
                }
                extents.len() * Extent::LEN
            }
            ForkContent::Btree(root, _) => {
                bytes[..root.as_bytes().len()].copy_from_slice(root.as_bytes());
                root.as_bytes().len()
            }
        };
        bytes[used..].fill(0);
    }

    /// Whether the fork maps nothing and holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.content {
            ForkContent::Device(_) | ForkContent::Btree(..) => false,
            ForkContent::Local(content) => content.is_empty(),
            ForkContent::Extents => self.extent_count() == 0,
        }
    }

    /// How the fork is stored.
    #[must_use]
    pub fn format(&self) -> ForkFormat {
        match self.content {
            ForkContent::Device(_) => ForkFormat::Dev,
            ForkContent::Local(_) => ForkFormat::Local,
            ForkContent::Extents => ForkFormat::Extents,
            ForkContent::Btree(..) => ForkFormat::Btree,
        }
    }

    /// Number of extents, without reading a tree.
    #[must_use]
    pub fn extent_count(&self) -> usize {
        match (&self.content, self.extents.get()) {
            (_, Some(extents)) => extents.len(),
            (ForkContent::Btree(_, count), None) => usize::try_from(*count).unwrap_or(usize::MAX),
            (_, None) => 0,
        }
    }

    /// Bytes that the fork needs inside the inode now.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        match &self.content {
            ForkContent::Device(_) => 4,
            ForkContent::Local(content) => content.len(),
            ForkContent::Extents => self.extent_count() * Extent::LEN,
            ForkContent::Btree(root, _) => BmapRoot::HEADER_LEN + root.len() * 16,
        }
    }
}

/// The part of a local fork that is in use.
fn local_bytes<'b>(core: &InodeCore, kind: ForkKind, bytes: &'b [u8]) -> Result<&'b [u8], String> {
    let used = match kind {
        ForkKind::Data => usize::try_from(core.size).unwrap_or(usize::MAX),
        // The attribute list starts with its own length.
        ForkKind::Attr => match bytes.first_chunk::<2>() {
            Some(length) => usize::from(u16::from_be_bytes(*length)),
            None => 0,
        },
    };
    bytes.get(..used).ok_or_else(|| format!("{used} bytes do not fit a fork of {}", bytes.len()))
}
