//! Blocks of directories, attributes, symbolic links and mapping trees moved: their headers say
//! where they are.

use super::destination::{self, Wanted};
use super::size::Size;
use crate::bmap;
use crate::bytes::{be32, put_be64};
use crate::cache::stamp;
use crate::error::Error;
use crate::file::when_free;
use crate::format::{BufferKind, Extent, FileType, Header, RmapFlags, RmapRecord};
use crate::group_tree::owners;
use crate::inode::{ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock, InodeNumber, Lsn};
use crate::volume::Volume;
use std::ops::ControlFlow;
use undercroft_block::{Batch, Bio, Buffer, Plug, read_exact_at};

/// Moves a block of the mapping tree of a fork.
pub(super) fn move_tree_block(
    volume: &Volume,
    number: InodeNumber,
    kind: ForkKind,
    block: FsBlock,
) -> Result<(), Error> {
    when_free(volume, || {
        let mut trans = volume.begin()?;
        let mut inode = volume.lock_inode(number)?;
        trans.claim(1)?;
        bmap::extents(volume, &inode, kind)?;
        // It may have left its tree since it was found, as data that moved has fewer mappings.
        if !is_in_tree(volume, &inode, kind, block)? {
            return trans.commit(&mut [&mut inode]);
        }
        trans.lock_groups([volume.geometry().split_block(block).0])?;
        inode.touch();
        let hint = volume.geometry().inode_fs_block(number);
        bmap::relocate_tree_block(&mut trans, &mut inode, kind, block, hint)?;
        trans.commit(&mut [&mut inode])
    })
}

/// Whether a block is one of the mapping tree of a fork.
fn is_in_tree(
    volume: &Volume,
    inode: &InodeState,
    kind: ForkKind,
    block: FsBlock,
) -> Result<bool, Error> {
    if !volume.geometry().features.rmapbt() {
        return Ok(bmap::tree_block_list(volume, inode, kind)?.contains(&block));
    }
    // One look, where the list has the whole tree.
    let ((ag, start), mut found) = (volume.geometry().split_block(block), false);
    owners(volume, ag, start, 1, |record| {
        found = record.owner.as_inode() == Some(inode.number)
            && record.flags.contains(RmapFlags::BMBT_BLOCK)
            && record.flags.contains(RmapFlags::ATTR_FORK) == (kind == ForkKind::Attr);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Moves the blocks of a mapping of a fork, one buffer after the other.
pub(super) fn move_blocks(
    volume: &Volume,
    size: Size,
    number: InodeNumber,
    kind: ForkKind,
    record: &RmapRecord,
) -> Result<(), Error> {
    let end = FileBlock(record.offset.0 + u64::from(record.len));
    let mut at = record.offset;
    while at < end {
        at = when_free(volume, || step(volume, size, number, kind, at))?;
    }
    Ok(())
}

/// Moves the buffer that has file block `at`, in one transaction; returns the block behind it.
fn step(
    volume: &Volume,
    size: Size,
    number: InodeNumber,
    kind: ForkKind,
    at: FileBlock,
) -> Result<FileBlock, Error> {
    let mut trans = volume.begin()?;
    let mut inode = volume.lock_inode(number)?;
    let old = buffer_at(volume, &inode, kind, at)?;
    let buffer_kind = kind_of(kind, inode.file_type(), magic(volume, old.start)?);
    let unlogged = buffer_kind == BufferKind::AttrRemote;
    bmap::prepare(&mut trans, &inode, kind, &[old.start], &[old.offset, old.end()], 2)?;
    inode.touch();
    let wanted = Wanted { kind, min_len: old.len, unlogged };
    let new = match destination::find(&mut trans, &inode, size, &old, wanted) {
        Err(error @ Error::Busy(_)) => {
            // Free lists may have changed.
            trans.commit(&mut [&mut inode])?;
            return Err(error);
        }
        found => found?,
    };
    if unlogged {
        write_value(&mut trans, &old, &new, number)?;
    } else {
        copy_buffer(&mut trans, buffer_kind, &old, &new)?;
    }
    bmap::relocate(&mut trans, &mut inode, kind, old, new)?;
    trans.commit(&mut [&mut inode])?;
    Ok(old.end())
}

/// The blocks of the buffer that has file block `at`.
fn buffer_at(
    volume: &Volume,
    inode: &InodeState,
    kind: ForkKind,
    at: FileBlock,
) -> Result<Extent, Error> {
    let next = FileBlock(at.0 + 1);
    let found = bmap::extents(volume, inode, kind)?.last_in(at, next);
    let damaged = |what: &str| Error::Inode { inode: inode.number, what: what.into() };
    let (whole, _) = found.ok_or_else(|| damaged("a reverse mapping names a block it has not"))?;
    let (first, len) = match (kind, inode.file_type()) {
        (ForkKind::Data, FileType::Symlink) => (whole.offset, whole.len),
        (ForkKind::Data, FileType::Directory) => {
            let unit = volume.geometry().dir_block_blocks();
            (FileBlock(at.0 / u64::from(unit) * u64::from(unit)), unit)
        }
        _ => (at, 1),
    };
    let end = first.0 + u64::from(len);
    if first < whole.offset || end > whole.end().0 {
        return Err(Error::NotUsable(format!(
            "a block of directory {} lies in pieces, which cannot be moved",
            inode.number
        )));
    }
    let start = FsBlock(whole.start.0 + (first.0 - whole.offset.0));
    Ok(Extent { offset: first, start, len, unwritten: false })
}

/// Whether a block of an attribute fork is one of a value.
pub(super) fn is_value(volume: &Volume, block: FsBlock) -> Result<bool, Error> {
    let magic = magic(volume, block)?;
    Ok(kind_of(ForkKind::Attr, FileType::Regular, magic) == BufferKind::AttrRemote)
}

/// The first word of the blocks of a buffer. One that is not in memory is on the disk.
fn magic(volume: &Volume, block: FsBlock) -> Result<u32, Error> {
    let sector = volume.geometry().sector(block);
    if let Some(buffer) = volume.cache().peek(sector) {
        return Ok(be32(&buffer.read(), 0));
    }
    let mut bytes = vec![0; volume.geometry().sector_size()];
    read_exact_at(volume.cache().device().as_ref(), sector, &mut bytes)?;
    Ok(be32(&bytes, 0))
}

/// The kind of a buffer that begins with `magic`.
fn kind_of(kind: ForkKind, file_type: FileType, magic: u32) -> BufferKind {
    let of_directory = [BufferKind::DirBlock, BufferKind::DirData, BufferKind::DirFree];
    let magic = magic.to_be_bytes();
    match (kind, &magic) {
        (ForkKind::Attr, b"XARM") => BufferKind::AttrRemote,
        (ForkKind::Data, b"XDB3") => of_directory[0],
        (ForkKind::Data, b"XDD3") => of_directory[1],
        (ForkKind::Data, b"XDF3") => of_directory[2],
        (ForkKind::Data, _) if file_type == FileType::Symlink => BufferKind::Symlink,
        _ => BufferKind::DaAny,
    }
}

/// Makes a copy of a buffer at its new place, which knows that place.
fn copy_buffer(
    trans: &mut Transaction<'_>,
    kind: BufferKind,
    old: &Extent,
    new: &Extent,
) -> Result<(), Error> {
    let volume = trans.volume();
    let source = trans.read(&volume.block_address(old.start, old.len), kind)?;
    let (kind, mut bytes) = {
        let content = source.read();
        (content.kind(), content.to_vec())
    };
    let geometry = volume.geometry();
    if let Some(header) = Header::of(kind) {
        header.set_address(&mut bytes, geometry.sector(new.start), geometry.block_size());
    }
    let target = trans.fresh(volume.block_address(new.start, new.len), kind);
    trans.edit(&target).edit().put_bytes(0, &bytes);
    Ok(())
}

/// Writes a block of an attribute's value to its new place, as one of the inode `owner`: values do
/// not go through the journal, which waits for them.
pub(super) fn write_value(
    trans: &mut Transaction<'_>,
    old: &Extent,
    new: &Extent,
    owner: InodeNumber,
) -> Result<(), Error> {
    let (volume, kind) = (trans.volume(), BufferKind::AttrRemote);
    let source = trans.read(&volume.block_address(old.start, old.len), kind)?;
    let (mut bytes, geometry) = (source.read().to_vec(), volume.geometry());
    if let Some(header) = Header::of(kind) {
        header.set_address(&mut bytes, geometry.sector(new.start), geometry.block_size());
        if let Some(offset) = header.inode_owner_offset() {
            put_be64(&mut bytes, offset, owner.0);
        }
    }
    stamp(kind, &mut bytes, Lsn(0), geometry);
    let (plug, writes) = (Plug::new(volume.cache().device()), Batch::new());
    let bio = Bio::write(geometry.sector(new.start), Buffer::copy_of(&bytes));
    plug.submit(bio.in_batch(&writes));
    plug.flush();
    trans.add_data(&writes);
    Ok(())
}
