//! What is legible of directories, attributes and symbolic links whose structure is damaged: taken out, so that
//! it can be put into new ones.

use undercroft_recover::pieces::{self, Entry};
use undercroft_xfs::format::da_block::BlockIdentity;
use undercroft_xfs::format::dir_layout::DirLayout;
use undercroft_xfs::format::{
    AttrFlags, AttrLeafLayout, BufferKind, Extent, ForkFormat, Geometry, Header, Namespace,
    SYMLINK_MAX, attr_remote_blocks, attr_remote_part, attr_remote_payload, bytes, dir_shortform,
    symlink_part, symlink_payload, verify_attr_leaf, verify_attr_name, verify_attr_remote,
    verify_symlink, write_symlink,
};
use undercroft_xfs::ops::mend::RawAttribute;
use undercroft_xfs::units::{FsBlock, InodeNumber, Lsn};

use super::sound::Sound;
use crate::error::RepairError;
use crate::subject::Subject;

/// Longest value of an attribute.
const VALUE_MAX: usize = 65_536;

/// What was taken out of an inode, and is to be put into it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refill {
    /// Entries of a directory that is empty now.
    pub(crate) entries: Option<Vec<Entry>>,
    /// Attributes of an inode that has none now.
    pub(crate) attributes: Option<Vec<RawAttribute>>,
    /// Paths of an inode that was made again, as names from the root down.
    pub(crate) paths: Vec<Vec<Vec<u8>>>,
}

/// The entries of a sound directory, and where its ".." leads.
pub(crate) fn entries(
    subject: &Subject,
    sound: &Sound,
    inode: &[u8],
) -> Result<(Vec<Entry>, Option<InodeNumber>), RepairError> {
    let geometry = &subject.geometry;
    if sound.core.data_format == ForkFormat::Local {
        let fork = &inode[sound.core.data_fork(geometry)];
        let size = usize::try_from(sound.core.size).unwrap_or(usize::MAX).min(fork.len());
        let told = pieces::directory_in_inode(geometry, &fork[..size]);
        return Ok(told.map_or((Vec::new(), None), |told| (told.entries, told.parent)));
    }
    entries_in_blocks(subject, sound.number, &sound.data.extents)
}

/// The entries of a directory in blocks, and its parent.
pub(crate) fn entries_in_blocks(
    subject: &Subject,
    number: InodeNumber,
    extents: &[Extent],
) -> Result<(Vec<Entry>, Option<InodeNumber>), RepairError> {
    let geometry = &subject.geometry;
    let end = geometry.dir_leaf_block().0;
    let unit = u64::from(geometry.dir_block_blocks());
    let (mut entries, mut parent) = (Vec::new(), None);
    let mapped = extents.iter().filter(|extent| extent.offset.0 < end);
    let mut pending: Vec<u8> = Vec::new();
    for extent in mapped {
        for index in 0..extent.len {
            let at = extent.offset.0 + u64::from(index);
            if at.is_multiple_of(unit) {
                pending.clear();
            }
            let Ok(block) = subject.blocks(FsBlock(extent.start.0 + u64::from(index)), 1) else {
                continue;
            };
            pending.extend(block);
            if pending.len() == geometry.dir_block_size() {
                if let Some(found) = pieces::directory_block(geometry, number, &pending) {
                    parent = parent.or(found.parent);
                    entries.extend(found.entries.into_iter().filter(|entry| !entry.is_removed));
                }
                pending.clear();
            }
        }
    }
    Ok((entries, parent))
}

/// The bytes of an empty directory.
pub(crate) fn empty_directory(geometry: &Geometry, parent: InodeNumber) -> Vec<u8> {
    let wide = dir_shortform::is_wide(parent);
    dir_shortform::ShortWriter::new(DirLayout::new(geometry), parent, wide, 10).finish()
}

/// The attributes of a list inside an inode, up to the first that is none; parent pointers are left out.
pub(crate) fn attributes_in_inode(fork: &[u8]) -> Vec<RawAttribute> {
    let mut attributes = Vec::new();
    let Some(count) = fork.get(2) else { return attributes };
    let mut at = 4;
    for _ in 0..*count {
        let Some(&[name_len, value_len, flags]) = fork.get(at..).and_then(<[u8]>::first_chunk)
        else {
            break;
        };
        let (name_len, value_len) = (usize::from(name_len), usize::from(value_len));
        let start = at + 3;
        let Some(name) = fork.get(start..start + name_len) else { break };
        let Some(value) = fork.get(start + name_len..start + name_len + value_len) else { break };
        push(&mut attributes, flags, name, value);
        at = start + name_len + value_len;
    }
    attributes
}

fn push(to: &mut Vec<RawAttribute>, flags: u8, name: &[u8], value: &[u8]) {
    let flags = AttrFlags::from_bits_truncate(flags);
    let namespace = Namespace::from_flags(flags - AttrFlags::LOCAL);
    let is_whole = !flags.contains(AttrFlags::INCOMPLETE);
    if let Some(namespace) = namespace
        && is_whole
        && namespace != Namespace::Parent
        && verify_attr_name(name).is_ok()
        && !to.iter().any(|known| known.namespace == namespace && known.name == name)
    {
        to.push(RawAttribute { namespace, name: name.to_vec(), value: value.to_vec() });
    }
}

/// The attributes in the leaves of a fork, as far as their items are inside of them.
pub(crate) fn attributes_in_blocks(
    subject: &Subject,
    number: InodeNumber,
    extents: &[Extent],
) -> Vec<RawAttribute> {
    let mut attributes = Vec::new();
    for extent in extents {
        for index in 0..extent.len {
            let block = FsBlock(extent.start.0 + u64::from(index));
            let Ok(bytes_) = subject.blocks(block, 1) else { continue };
            if is_attribute_leaf(subject, number, &bytes_) {
                leaf(subject, extents, number, &bytes_, &mut attributes);
            }
        }
    }
    attributes
}

/// Hands over the sound leaves of the attributes of an inode.
pub(crate) fn attribute_leaves(
    subject: &Subject,
    number: InodeNumber,
    extents: &[Extent],
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), RepairError> {
    for extent in extents {
        for index in 0..u64::from(extent.len) {
            let block = subject.blocks(FsBlock(extent.start.0 + index), 1)?;
            let is_leaf = is_attribute_leaf(subject, number, &block);
            if is_leaf && verify_attr_leaf(&block, &subject.geometry).is_ok() {
                visit(&block);
            }
        }
    }
    Ok(())
}

/// Whether a block says that it is a leaf of attributes of an inode.
fn is_attribute_leaf(subject: &Subject, number: InodeNumber, block: &[u8]) -> bool {
    const MAGIC: u16 = 0x3bee;
    bytes::be16(block, 8) == MAGIC
        && bytes::be64(block, 48) == number.0
        && block[32..48] == *subject.geometry.meta_uuid.as_bytes()
}

fn leaf(
    subject: &Subject,
    extents: &[Extent],
    number: InodeNumber,
    block: &[u8],
    to: &mut Vec<RawAttribute>,
) {
    let layout = AttrLeafLayout::new(&subject.geometry);
    let start = layout.header_size();
    let room = (block.len() - start) / 8;
    for index in 0..layout.count(block).min(room) {
        let entry = start + 8 * index;
        let (at, flags) = (usize::from(bytes::be16(block, entry + 4)), block[entry + 6]);
        if flags & 1 != 0 {
            let Some(&[high, low, len]) = block.get(at..).and_then(<[u8]>::first_chunk) else {
                continue;
            };
            let (value_len, len) = (usize::from(u16::from_be_bytes([high, low])), usize::from(len));
            let name = block.get(at + 3..at + 3 + len);
            let value = block.get(at + 3 + len..at + 3 + len + value_len);
            if let Some((name, value)) = name.zip(value) {
                push(to, flags, name, value);
            }
        } else if let Some(item) = block.get(at..at.saturating_add(9)) {
            let (first, value_len) = (bytes::be32(item, 0), bytes::be32(item, 4) as usize);
            let len = usize::from(item[8]);
            let value = remote(subject, extents, number, first.into(), value_len);
            if let Some((name, value)) = block.get(at + 9..at + 9 + len).zip(value) {
                push(to, flags, name, &value);
            }
        }
    }
}

fn remote(
    subject: &Subject,
    extents: &[Extent],
    number: InodeNumber,
    first: u64,
    len: usize,
) -> Option<Vec<u8>> {
    let geometry = &subject.geometry;
    if len == 0 || len > VALUE_MAX {
        return None;
    }
    let mut value = Vec::with_capacity(len);
    for index in 0..u64::from(attr_remote_blocks(geometry, len)) {
        let block = subject.blocks(place(extents, first + index)?, 1).ok()?;
        verify_attr_remote(&block, geometry).ok()?;
        if bytes::be64(&block, 32) != number.0 {
            return None;
        }
        let offset = index as usize * attr_remote_payload(geometry);
        value.extend_from_slice(attr_remote_part(&block, geometry, offset, len).ok()?);
    }
    Some(value)
}

/// Where a block of a fork is.
fn place(extents: &[Extent], at: u64) -> Option<FsBlock> {
    let extent = extents.iter().find(|it| it.offset.0 <= at && at < it.end().0)?;
    Some(FsBlock(extent.start.0 + (at - extent.offset.0)))
}

/// The target of a symbolic link in blocks; `None` if it is not whole.
pub(crate) fn target(
    subject: &Subject,
    number: InodeNumber,
    extents: &[Extent],
    size: u64,
) -> Option<Vec<u8>> {
    let geometry = &subject.geometry;
    let size = usize::try_from(size).ok().filter(|size| *size > 0 && *size <= SYMLINK_MAX)?;
    let header = Header::of(BufferKind::Symlink)?;
    let mut target = Vec::with_capacity(size);
    for extent in extents {
        let block = subject.blocks(extent.start, extent.len.min(LINK_BLOCKS)).ok()?;
        let sector = geometry.sector(extent.start);
        header.verify(&block, sector, &geometry.meta_uuid, geometry.block_size()).ok()?;
        verify_symlink(&block, geometry).ok()?;
        if header.owner(&block) != Some(number.0) {
            return None;
        }
        let offset = target.len();
        target.extend_from_slice(symlink_part(&block, geometry, offset, size).ok()?);
    }
    (target.len() == size && !target.contains(&0)).then_some(target)
}

/// Most blocks of a target.
const LINK_BLOCKS: u32 = 2;

/// Writes the headers of a target's blocks anew, if its bytes can be those of one and most of each header
/// says so; whether it is whole then.
pub(crate) fn renew_target(
    subject: &Subject,
    number: InodeNumber,
    extents: &[Extent],
    size: u64,
) -> Result<bool, RepairError> {
    let geometry = &subject.geometry;
    let size = usize::try_from(size).unwrap_or(0);
    let Some(header) = Header::of(BufferKind::Symlink) else { return Ok(false) };
    let mut done = 0;
    for extent in extents {
        let blkno = geometry.sector(extent.start);
        let mut block = subject.blocks(extent.start, extent.len.min(LINK_BLOCKS))?;
        let signs = [
            header.has_magic(&block),
            header.owner(&block) == Some(number.0),
            header.address(&block) == Some(blkno),
            header.volume(&block) == geometry.meta_uuid,
        ];
        let payload = symlink_payload(geometry, block.len());
        let start = block.len() - payload;
        let part = block[start..start + payload.min(size.saturating_sub(done))].to_vec();
        let is_own = signs.into_iter().filter(|sign| *sign).count() >= 3;
        if !is_own || part.is_empty() || part.contains(&0) {
            return Ok(false);
        }
        let identity = BlockIdentity { blkno, uuid: geometry.meta_uuid, owner: number };
        let mut changes = bytes::Changes::default();
        let mut edit = bytes::EditBytes::new(&mut block, &mut changes);
        write_symlink(&mut edit, geometry, &identity, done, &part);
        header.stamp(&mut block, Lsn(0), geometry.block_size());
        subject.scratch.write(blkno, &block)?;
        done += part.len();
    }
    Ok(done == size)
}
