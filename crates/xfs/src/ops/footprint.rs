//! Blocks that inodes will take, before they exist: the size for a volume is computed from them.
//!
//! The decisions are those of the operations: which structures lie inside an inode, which in one
//! block, which in a tree. Where the order of hashes decides how full blocks become, they count as
//! half full, the least there is after splits. Inode chunks are not counted here.

use crate::attr::fork_offset::{self, ForkShape, default_offset};
use crate::format::dir_layout::DirLayout;
use crate::format::{
    ATTR_ENTRY_SIZE, AclKind, AttrLeafLayout, Extent, ForkFormat, HeaderLayout, Namespace,
    PARENT_VALUE_SIZE, SHORTFORM_COUNT_MAX, SHORTFORM_HEADER, SHORTFORM_PART_MAX, TreeKind,
    attr_remote_blocks, dir_free, dir_leaf, dir_shortform, local_item_size, remote_item_size,
    shortform_entry_size, symlink_blocks,
};
use crate::geometry::Geometry;
use crate::units::{AgInode, AgNumber};

/// Bytes of an ACL's header, in its form for programs and on disk.
const ACL_HEADER: usize = 4;

/// Bytes of an ACL's entry, in its form for programs and on disk.
const ACL_ENTRY: (usize, usize) = (8, 12);

/// The content of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A directory, whose names are counted by [`DirectoryFootprint`].
    Directory,
    /// Data in this many blocks, in this many runs with holes between them.
    File {
        /// Blocks.
        blocks: u64,
        /// Runs.
        runs: u64,
    },
    /// A symbolic link with a target of this many bytes.
    Symlink(usize),
    /// A device, FIFO or socket.
    Special,
}

/// Lengths of an attribute as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredAttribute {
    name: usize,
    value: usize,
    parent: bool,
}

impl StoredAttribute {
    /// An attribute under its full name.
    #[must_use]
    pub fn new(name: &[u8], value: &[u8]) -> Self {
        let acl = AclKind::from_xattr_name(name);
        let stored = match acl {
            Some(kind) => kind.disk_name().len(),
            None => Namespace::split(name).map_or(name.len(), |(_, name)| name.len()),
        };
        let entries = value.len().saturating_sub(ACL_HEADER).div_ceil(ACL_ENTRY.0);
        let list = ACL_HEADER + entries * ACL_ENTRY.1;
        let value = if acl.is_some() { list } else { value.len() };
        Self { name: stored, value, parent: false }
    }

    /// The pointer from an inode to a directory that has it under a name of `name` bytes.
    #[must_use]
    pub const fn parent_pointer(name: usize) -> Self {
        Self { name, value: PARENT_VALUE_SIZE, parent: true }
    }

    /// Attributes of which only the length as a list is known; attributes outside a list have more
    /// than 254 bytes.
    #[must_use]
    pub fn others(bytes: usize) -> Self {
        Self { name: 0, value: bytes.min(SHORTFORM_PART_MAX + 1), parent: false }
    }

    /// Bytes in a list inside the inode; `None` if it cannot be there.
    #[must_use]
    pub const fn in_list(&self) -> Option<usize> {
        shortform_entry_size(self.name, self.value)
    }

    /// Bytes in a leaf, and blocks outside of it.
    fn in_leaf(&self, geometry: &Geometry) -> (usize, u64) {
        let layout = AttrLeafLayout::new(geometry);
        if self.parent || layout.is_local(self.name, self.value) {
            (ATTR_ENTRY_SIZE + local_item_size(self.name, self.value), 0)
        } else {
            let blocks = attr_remote_blocks(geometry, self.value);
            (ATTR_ENTRY_SIZE + remote_item_size(self.name), blocks.into())
        }
    }
}

/// The blocks that one inode takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Blocks for data, link target, attributes and maps.
    pub blocks: u64,
    /// Bytes inside the inode that a directory's names may take.
    pub room: usize,
}

impl Footprint {
    /// The blocks of an inode with `attributes`, its parent pointers first among them.
    #[must_use]
    pub fn new(geometry: &Geometry, content: Content, attributes: &[StoredAttribute]) -> Self {
        let pointers = attributes.iter().take_while(|attribute| attribute.parent).count();
        let born_with_fork = pointers > 0;
        let data_format = match content {
            Content::Special => ForkFormat::Dev,
            _ => ForkFormat::Extents,
        };
        let mut shape = ForkShape { data_format, data_used: 0, forkoff: 0 };
        if born_with_fork {
            shape.forkoff = default_offset(geometry, data_format);
        }
        let mut blocks = 0;
        match content {
            Content::Directory => {
                shape.data_format = ForkFormat::Local;
                shape.data_used = dir_shortform::header_size(true);
            }
            Content::Symlink(len) if len <= room(geometry, &shape) => {
                shape.data_format = ForkFormat::Local;
                shape.data_used = len;
            }
            Content::Symlink(len) => {
                shape.data_used = Extent::LEN;
                blocks += u64::from(symlink_blocks(geometry, len));
            }
            Content::File { .. } | Content::Special => {}
        }
        // The name comes first, the other attributes after it.
        let fits = [pointers.min(1), attributes.len()].into_iter().all(|count| {
            count == 0
                || list_size(&attributes[..count])
                    .and_then(|size| fork_offset::fit(geometry, &shape, size))
                    .inspect(|units| shape.forkoff = *units)
                    .is_some()
        });
        if !fits {
            if shape.forkoff == 0 {
                shape.forkoff = default_offset(geometry, data_format);
            }
            blocks += leaf_blocks(geometry, &shape, attributes);
        }
        let room = room(geometry, &shape);
        if let Content::Symlink(len) = content
            && shape.data_format == ForkFormat::Local
            && len > room
        {
            // The target makes way.
            blocks += u64::from(symlink_blocks(geometry, len));
        }
        if let Content::File { blocks: data, runs } = content {
            blocks += data + map_blocks(geometry, runs, room);
        }
        Self { blocks, room }
    }
}

/// Bytes of the data fork inside the inode.
fn room(geometry: &Geometry, shape: &ForkShape) -> usize {
    if shape.forkoff == 0 { geometry.literal_size() } else { usize::from(shape.forkoff) * 8 }
}

/// Bytes of these attributes as a list in the inode, if they can be one.
fn list_size(attributes: &[StoredAttribute]) -> Option<usize> {
    let entries = attributes.iter().map(StoredAttribute::in_list).sum::<Option<usize>>()?;
    (attributes.len() <= SHORTFORM_COUNT_MAX).then_some(SHORTFORM_HEADER + entries)
}

/// Blocks of attributes that are not in the inode.
fn leaf_blocks(geometry: &Geometry, shape: &ForkShape, attributes: &[StoredAttribute]) -> u64 {
    let (mut bytes, mut values, mut extents) = (0, 0, 0);
    for attribute in attributes {
        let (in_leaf, outside) = attribute.in_leaf(geometry);
        bytes += in_leaf;
        values += outside;
        extents += u64::from(outside > 0);
    }
    let capacity = AttrLeafLayout::new(geometry).capacity();
    let leaves = if bytes <= capacity {
        1
    } else {
        let halves = 2 * bytes.div_ceil(capacity) + 1;
        // Above them a tree, whose blocks hold hundreds of pairs.
        halves.min(attributes.len()) + 1 + halves / 64
    } as u64;
    let room = geometry.literal_size().saturating_sub(room(geometry, shape));
    leaves + values + map_blocks(geometry, leaves + extents, room)
}

/// Blocks of the tree that maps so many extents, if they do not fit `room` bytes in the inode.
fn map_blocks(geometry: &Geometry, extents: u64, room: usize) -> u64 {
    if extents <= (room / Extent::LEN) as u64 {
        return 0;
    }
    let header = HeaderLayout::new(TreeKind::Bmbt, geometry.features.crc).header_len();
    // Records, and pairs of key and pointer, have the same length.
    let per_block = ((geometry.block_size() - header) / Extent::LEN) as u64;
    // Appending leaves blocks nearly full.
    let mut level = (extents + extents / 8).div_ceil(per_block) + 1;
    let mut total = level;
    while level > (room.saturating_sub(Extent::LEN) / Extent::LEN).max(1) as u64 {
        level = level.div_ceil(per_block / 2);
        total += level;
    }
    total
}

/// The names of one directory, as they are added one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectoryFootprint {
    /// Number of names.
    names: u32,
    /// Bytes of names.
    bytes: u64,
    /// Bytes of entries in the data blocks.
    entries: u64,
    /// Data blocks, each filled until the next name did not fit.
    blocks: u32,
    /// Bytes in the last of them.
    filled: u32,
}

impl DirectoryFootprint {
    /// Adds a name of `len` bytes.
    pub fn add(&mut self, geometry: &Geometry, len: usize) {
        let layout = DirLayout::new(geometry);
        // A block has at most 64 KiB.
        let entry = layout.entry_size(len) as u32;
        if self.names == 0 {
            self.blocks = 1;
            self.filled = (layout.first_name_offset() - layout.data_start()) as u32;
        }
        if (self.filled + entry) as usize > layout.data_capacity() {
            self.blocks += 1;
            self.filled = 0;
        }
        self.filled += entry;
        self.names += 1;
        self.bytes += len as u64;
        self.entries += u64::from(entry);
    }

    /// Blocks that the directory takes; its inode has `room` bytes for names.
    #[must_use]
    pub fn blocks(&self, geometry: &Geometry, room: usize) -> u64 {
        let layout = DirLayout::new(geometry);
        let (names, bytes) = (self.names as usize, self.bytes as usize);
        // Numbers of eight bytes are needed on large volumes only.
        let wide =
            geometry.inode_number(AgNumber(geometry.ag_count), AgInode(0)).0 > u64::from(u32::MAX);
        let short = dir_shortform::header_size(wide)
            + bytes
            + names * dir_shortform::entry_size(layout, 0, wide);
        if short <= room && names < usize::from(u8::MAX) {
            return 0;
        }
        let per = u64::from(geometry.dir_block_blocks());
        let pairs = names + 2;
        let data_end = layout.first_name_offset() + self.entries as usize;
        if dir_shortform::block_form_size(data_end, names) <= layout.block_size() {
            return per;
        }
        let data = self.blocks as usize;
        let da = layout.da();
        let index = if dir_leaf::leaf1_size(da, pairs, data) <= da.block_size {
            1
        } else {
            let leaves = (2 * pairs).div_ceil(da.max_pairs()) + 1;
            let nodes = (2 * leaves).div_ceil(da.max_pairs()) + 1;
            leaves + nodes + data.div_ceil(dir_free::capacity(layout))
        };
        let blocks = (data + index) as u64;
        // Blocks of a directory lie where there was room when each was added.
        blocks * per + map_blocks(geometry, 2 * blocks, room)
    }
}
