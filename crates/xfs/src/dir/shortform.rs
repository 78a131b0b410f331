//! Short form: search and change by rewriting the few bytes
//! (docs/algorithms/directories.md#short-form-and-block-form).

use super::{Entry, NewEntry};
use crate::da::{DaFork, DaForkMut};
use crate::error::Error;
use crate::format::EntryType;
use crate::format::dir_layout::DirLayout;
use crate::format::dir_shortform::{
    ShortEntry, ShortForm, ShortWriter, block_form_size, entry_size, header_size, is_wide,
};
use crate::units::{FileBlock, InodeNumber};

/// The result of [`replace`].
#[derive(Debug)]
pub(super) enum Replaced {
    /// The name does not exist.
    Absent,
    /// It stood for this.
    Done(Entry),
    /// The wider inode number does not fit the fork.
    NoRoom,
}

/// Opens the local content.
pub(super) fn open<F: DaFork + ?Sized>(
    fork: &F,
    layout: DirLayout,
) -> Result<ShortForm<'_>, Error> {
    let content = fork.local().unwrap_or_default();
    ShortForm::new(content, layout).map_err(|what| fork.corrupt(FileBlock(0), what))
}

pub(super) fn find<F: DaFork + ?Sized>(
    fork: &F,
    layout: DirLayout,
    name: &[u8],
) -> Result<Option<Entry>, Error> {
    let short = open(fork, layout)?;
    let directory = |inode| Some(Entry { inode, ftype: directory_type(layout) });
    match name {
        b"." => return Ok(directory(fork.inode())),
        b".." => return Ok(directory(short.parent())),
        _ => {}
    }
    for found in short.entries() {
        let ShortEntry { entry, .. } = found.map_err(|what| fork.corrupt(FileBlock(0), what))?;
        if layout.same_name(entry.name, name) {
            return Ok(Some(Entry { inode: entry.inode, ftype: entry.ftype }));
        }
    }
    Ok(None)
}

/// Type of "." and "..".
pub(super) const fn directory_type(layout: DirLayout) -> EntryType {
    if layout.ftype { EntryType::Directory } else { EntryType::Unknown }
}

/// Where a new entry goes.
#[derive(Debug)]
pub(super) struct ShortFormSlot {
    /// Before which entry.
    index: usize,
    /// Its offset in block form.
    offset: usize,
    wide: bool,
    /// Bytes of the content with it.
    size: usize,
}

/// Where an entry for `inode` with `name` fits; `None` if the directory must become a block first.
pub(super) fn room<F: DaFork + ?Sized>(
    fork: &F,
    layout: DirLayout,
    name: &[u8],
    inode: InodeNumber,
) -> Result<Option<ShortFormSlot>, Error> {
    let corrupt = |what| fork.corrupt(FileBlock(0), what);
    let short = open(fork, layout)?;
    let wide = short.wide() || is_wide(inode);
    let len = layout.entry_size(name.len());
    let mut size = header_size(wide) + entry_size(layout, name.len(), wide);
    // The first gap between saved offsets that is long enough: before which entry, at what offset.
    let (mut gap, mut end) = (None, layout.first_name_offset());
    for (index, found) in short.entries().enumerate() {
        let ShortEntry { offset, entry } = found.map_err(corrupt)?;
        if gap.is_none() && end + len <= usize::from(offset) {
            gap = Some((index, end));
        }
        end = usize::from(offset) + layout.entry_size(entry.name.len());
        size += entry_size(layout, entry.name.len(), wide);
    }
    let fits = |end: usize| block_form_size(end, short.count() + 1) <= layout.block_size();
    let (index, offset) = match gap {
        _ if size > fork.inline_size() || short.count() == usize::from(u8::MAX) => {
            return Ok(None);
        }
        _ if fits(end + len) => (short.count(), end),
        Some((index, offset)) if fits(end) => (index, offset),
        _ => return Ok(None),
    };
    Ok(Some(ShortFormSlot { index, offset, wide, size }))
}

/// Adds an entry; `false` if the directory must become a block first.
pub(super) fn insert<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    new: &NewEntry<'_>,
) -> Result<bool, Error> {
    let Some(room) = room(fork, layout, new.entry.name, new.entry.inode)? else {
        return Ok(false);
    };
    let ShortFormSlot { index: at, offset, wide, size } = room;
    let corrupt = |what| fork.corrupt(FileBlock(0), what);
    let short = open(fork, layout)?;
    let added = ShortEntry { offset: offset as u16, entry: new.entry };
    let mut writer = ShortWriter::new(layout, short.parent(), wide, size);
    for (index, found) in short.entries().enumerate() {
        if index == at {
            writer.push(&added);
        }
        writer.push(&found.map_err(corrupt)?);
    }
    if at == short.count() {
        writer.push(&added);
    }
    store(fork, writer.finish())?;
    Ok(true)
}

/// Removes `name`.
pub(super) fn remove<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    name: &[u8],
) -> Result<Option<Entry>, Error> {
    let Some(old) = find(fork, layout, name)? else { return Ok(None) };
    let short = open(fork, layout)?;
    let wide = short.wide_count() > usize::from(is_wide(old.inode));
    let mut writer = ShortWriter::new(layout, short.parent(), wide, fork.inline_size());
    for found in short.entries() {
        let kept = found.map_err(|what| fork.corrupt(FileBlock(0), what))?;
        if !layout.same_name(kept.entry.name, name) {
            writer.push(&kept);
        }
    }
    store(fork, writer.finish())?;
    Ok(Some(old))
}

/// Lets `name` stand for another inode.
pub(super) fn replace<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    name: &[u8],
    target: Entry,
) -> Result<Replaced, Error> {
    let Some(old) = find(fork, layout, name)? else { return Ok(Replaced::Absent) };
    let content = replaced(fork, layout, name, old, target)?;
    if content.len() > fork.inline_size() {
        return Ok(Replaced::NoRoom);
    }
    store(fork, content)?;
    Ok(Replaced::Done(old))
}

/// The content when `name`, which stands for `old`, stands for `target`; it need not fit the fork.
pub(super) fn replaced<F: DaFork + ?Sized>(
    fork: &F,
    layout: DirLayout,
    name: &[u8],
    old: Entry,
    target: Entry,
) -> Result<Vec<u8>, Error> {
    let short = open(fork, layout)?;
    let others = short.wide_count().saturating_sub(usize::from(is_wide(old.inode)));
    let wide = others > 0 || is_wide(target.inode);
    let is_parent = name == b"..";
    let parent = if is_parent { target.inode } else { short.parent() };
    let mut writer = ShortWriter::new(layout, parent, wide, fork.inline_size());
    for found in short.entries() {
        let mut kept = found.map_err(|what| fork.corrupt(FileBlock(0), what))?;
        if !is_parent && layout.same_name(kept.entry.name, name) {
            kept.entry.inode = target.inode;
            kept.entry.ftype = target.ftype;
        }
        writer.push(&kept);
    }
    Ok(writer.finish())
}

/// Makes `content` the local content of the fork.
pub(super) fn store<F: DaForkMut + ?Sized>(fork: &mut F, content: Vec<u8>) -> Result<(), Error> {
    fork.set_size(content.len() as u64);
    fork.set_local(Some(content))
}
