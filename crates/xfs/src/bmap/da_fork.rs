//! A fork of a real inode, as directory and attribute code sees it.

use super::allocate::allocate_logged;
use super::extents;
use super::{allocate, convert, remove};
use crate::attr::fork_offset::{self, ForkShape};
use crate::cache::{BufferAddress, BufferRef, EditGuard};
use crate::da::{DaFork, DaForkMut};
use crate::error::Error;
use crate::format::{BufferKind, Extent, FileType, Header};
use crate::geometry::Geometry;
use crate::inode::{Fork, ForkContent, ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock, InodeNumber};
use crate::volume::Volume;
use smallvec::SmallVec;

/// A fork open for reading.
#[derive(Debug)]
pub struct ForkReader<'a> {
    volume: &'a Volume,
    inode: &'a InodeState,
    kind: ForkKind,
}

impl<'a> ForkReader<'a> {
    /// The fork `kind` of `inode`.
    #[must_use]
    pub fn new(volume: &'a Volume, inode: &'a InodeState, kind: ForkKind) -> Self {
        Self { volume, inode, kind }
    }

    /// Where the buffer of `kind` at `block` lies; `None` for a hole.
    fn address(&self, block: FileBlock, kind: BufferKind) -> Result<Option<BufferAddress>, Error> {
        let extents = extents(self.volume, self.inode, self.kind)?;
        let geometry = self.volume.geometry();
        let Some(first) = extents.at_or_after(block).filter(|extent| extent.offset <= block) else {
            return Ok(None);
        };
        let end = if kind == BufferKind::Symlink {
            // One buffer for the rest of an extent, which has one header.
            first.end()
        } else {
            FileBlock(block.0.saturating_add(self.block_blocks().into()))
        };
        let place = |extent: &Extent, from| {
            let (start, len) = within(extent, from, end);
            (geometry.sector(start), len * geometry.sectors_per_block())
        };
        if end <= first.end() {
            let (sector, sectors) = place(&first, block);
            return Ok(Some(BufferAddress::contiguous(sector, sectors)));
        }
        let mut parts: SmallVec<[_; 4]> = SmallVec::new();
        let (mut extent, mut next) = (first, block);
        loop {
            parts.push(place(&extent, next));
            next = extent.end();
            if next >= end {
                return Ok(Some(BufferAddress::scattered(&parts)));
            }
            extent = match extents.at_or_after(next) {
                Some(extent) if extent.offset <= next => extent,
                _ => {
                    let what = "only a part of the block is mapped";
                    return Err(self.corrupt(block, what.into()));
                }
            };
        }
    }
}

/// The part of an extent inside `[from, to)`: first block of the volume and length.
fn within(extent: &Extent, from: FileBlock, to: FileBlock) -> (FsBlock, u32) {
    let skipped = from.0 - extent.offset.0;
    let end = extent.end().min(to);
    // No longer than the extent, whose length has 21 bits.
    (FsBlock(extent.start.0 + skipped), (end.0 - from.0) as u32)
}

impl DaFork for ForkReader<'_> {
    fn geometry(&self) -> &Geometry {
        self.volume.geometry()
    }

    fn inode(&self) -> InodeNumber {
        self.inode.number
    }

    fn block_blocks(&self) -> u32 {
        match self.kind {
            ForkKind::Data if self.inode.file_type() == FileType::Directory => {
                self.volume.geometry().dir_block_blocks()
            }
            _ => 1,
        }
    }

    fn local(&self) -> Option<&[u8]> {
        match self.inode.fork(self.kind).map(|fork| &fork.content) {
            Some(ForkContent::Local(content)) => Some(content),
            _ => None,
        }
    }

    fn inline_size(&self) -> usize {
        self.inode.inline_size(self.volume.geometry(), self.kind)
    }

    fn size(&self) -> u64 {
        self.inode.core.size
    }

    fn end(&mut self) -> Result<FileBlock, Error> {
        Ok(extents(self.volume, self.inode, self.kind)?.end())
    }

    fn next_mapped(&mut self, from: FileBlock) -> Result<Option<FileBlock>, Error> {
        let extents = extents(self.volume, self.inode, self.kind)?;
        Ok(extents.at_or_after(from).map(|extent| extent.offset.max(from)))
    }

    fn read(&mut self, block: FileBlock, kind: BufferKind) -> Result<Option<BufferRef>, Error> {
        let Some(address) = self.address(block, kind)? else {
            return Ok(None);
        };
        let buffer = self.volume.cache().read(&address, kind)?;
        if self.volume.geometry().features.crc {
            let bytes = buffer.read();
            let owner = Header::of(bytes.kind()).and_then(|header| header.owner(&bytes));
            if let Some(owner) = owner.filter(|owner| *owner != self.inode.number.0) {
                return Err(self.corrupt(block, format!("the block belongs to inode {owner}")));
            }
        }
        Ok(Some(buffer))
    }

    fn prefetch(&mut self, from: FileBlock, count: usize) -> FileBlock {
        let mut next = from;
        let mut places = Vec::with_capacity(count);
        while places.len() < count {
            let Ok(Some(block)) = self.next_mapped(next) else {
                next = FileBlock(u64::MAX);
                break;
            };
            // The kind matters for symbolic links alone.
            let Ok(Some(address)) = self.address(block, BufferKind::DirData) else { break };
            places.push(address);
            next = FileBlock(block.0 + u64::from(self.block_blocks()));
        }
        self.volume.cache().prefetch(places);
        next
    }

    fn corrupt(&self, block: FileBlock, what: String) -> Error {
        let structure = match self.kind {
            ForkKind::Data => "directory",
            ForkKind::Attr => "attributes",
        };
        Error::Fork { structure, inode: self.inode.number, block, what }
    }
}

/// A fork open for change in a transaction.
#[derive(Debug)]
pub struct ForkWriter<'t, 'v> {
    trans: &'t mut Transaction<'v>,
    inode: &'t mut InodeState,
    kind: ForkKind,
}

impl<'t, 'v> ForkWriter<'t, 'v> {
    /// The fork `kind` of a locked inode.
    pub fn new(trans: &'t mut Transaction<'v>, inode: &'t mut InodeState, kind: ForkKind) -> Self {
        Self { trans, inode, kind }
    }

    fn reader(&self) -> ForkReader<'_> {
        ForkReader::new(self.trans.volume(), self.inode, self.kind)
    }

    /// The first free place for `len` blocks from `from` on.
    fn gap(&self, from: FileBlock, len: u32) -> Result<FileBlock, Error> {
        let step = u64::from(self.reader().block_blocks());
        let extents = extents(self.trans.volume(), self.inode, self.kind)?;
        Ok(extents.gap(from, len.into(), step))
    }

    /// Maps new blocks, whose content goes through the journal, in the first gap from `from` on.
    fn map_logged(&mut self, from: FileBlock, len: u32) -> Result<FileBlock, Error> {
        let block = self.gap(from, len)?;
        allocate_logged(self.trans, self.inode, self.kind, block, len.into())?;
        Ok(block)
    }

    /// Sets the boundary between the forks; the data fork moves out of the way if it must.
    /// Local data is left to the caller.
    pub(crate) fn set_fork_offset(&mut self, units: u8) -> Result<(), Error> {
        if self.inode.core.forkoff == units {
            return Ok(());
        }
        self.inode.core.forkoff = units;
        self.inode.fork_mut(ForkKind::Attr);
        let geometry = self.trans.geometry();
        let room = self.inode.inline_size(geometry, ForkKind::Data);
        if matches!(self.inode.data.content, ForkContent::Extents)
            && self.inode.data.bytes_used() > room
        {
            convert::to_tree(self.trans, self.inode, ForkKind::Data)?;
        }
        convert::resize_root(self.trans, self.inode, ForkKind::Data)
    }
}

impl DaFork for ForkWriter<'_, '_> {
    fn geometry(&self) -> &Geometry {
        self.trans.geometry()
    }

    fn inode(&self) -> InodeNumber {
        self.inode.number
    }

    fn block_blocks(&self) -> u32 {
        self.reader().block_blocks()
    }

    fn local(&self) -> Option<&[u8]> {
        match self.inode.fork(self.kind).map(|fork| &fork.content) {
            Some(ForkContent::Local(content)) => Some(content),
            _ => None,
        }
    }

    fn inline_size(&self) -> usize {
        self.reader().inline_size()
    }

    fn size(&self) -> u64 {
        self.inode.core.size
    }

    fn end(&mut self) -> Result<FileBlock, Error> {
        self.reader().end()
    }

    fn next_mapped(&mut self, from: FileBlock) -> Result<Option<FileBlock>, Error> {
        self.reader().next_mapped(from)
    }

    fn read(&mut self, block: FileBlock, kind: BufferKind) -> Result<Option<BufferRef>, Error> {
        let geometry = self.trans.geometry();
        let is_directory = self.kind == ForkKind::Data && kind != BufferKind::Symlink;
        if is_directory && let Some(buffer) = self.inode.recent.find(geometry, block, kind) {
            return Ok(Some(buffer));
        }
        let buffer = self.reader().read(block, kind)?;
        let scattered = buffer.as_ref().is_some_and(|buffer| buffer.address().parts().len() > 1);
        if is_directory
            && !scattered
            && let Some(buffer) = &buffer
        {
            self.inode.recent.remember(geometry, block, buffer);
        }
        if scattered && self.trans.is_live() {
            return Err(Error::NotSupported(format!(
                "directory {} has a block in several pieces, which no kernel replays from a \
                 journal; copy it to a new directory instead",
                self.inode.number
            )));
        }
        Ok(buffer)
    }

    fn corrupt(&self, block: FileBlock, what: String) -> Error {
        self.reader().corrupt(block, what)
    }
}

impl DaForkMut for ForkWriter<'_, '_> {
    fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b> {
        self.trans.edit(buffer)
    }

    fn grow(&mut self, from: FileBlock, kind: BufferKind) -> Result<(FileBlock, BufferRef), Error> {
        let blocks = self.block_blocks();
        let block = self.map_logged(from, blocks)?;
        let address = self.reader().address(block, kind)?;
        let address = address.ok_or_else(|| self.corrupt(block, "it was just mapped".into()))?;
        Ok((block, self.trans.fresh(address, kind)))
    }

    fn map(&mut self, from: FileBlock, len: u32) -> Result<FileBlock, Error> {
        if self.kind == ForkKind::Data {
            // Targets of links go through the journal, values of attributes do not.
            return self.map_logged(from, len);
        }
        let block = self.gap(from, len)?;
        allocate(self.trans, self.inode, self.kind, block, len.into(), None)?;
        Ok(block)
    }

    fn fresh(&mut self, block: FileBlock, kind: BufferKind) -> Result<BufferRef, Error> {
        let address = self.reader().address(block, kind)?;
        let address = address.ok_or_else(|| self.corrupt(block, "it is not mapped".into()))?;
        Ok(self.trans.fresh(address, kind))
    }

    fn unmap(&mut self, block: FileBlock, len: u32) -> Result<(), Error> {
        let end = FileBlock(block.0 + u64::from(len));
        while remove(self.trans, self.inode, self.kind, block, end)? {}
        Ok(())
    }

    fn set_local(&mut self, content: Option<Vec<u8>>) -> Result<(), Error> {
        let leaves_short_form = self.kind == ForkKind::Attr && content.is_none();
        *self.inode.fork_mut(self.kind) = content.map_or_else(Fork::empty, Fork::local);
        let geometry = self.trans.geometry();
        let default = fork_offset::default_offset(geometry, self.inode.data.format());
        if leaves_short_form
            && self.inode.core.forkoff < default
            && !matches!(self.inode.data.content, ForkContent::Btree(..))
        {
            self.set_fork_offset(default)?;
        }
        Ok(())
    }

    fn set_size(&mut self, size: u64) {
        self.inode.core.size = size;
        self.inode.touch();
    }

    fn make_room(&mut self, bytes: usize) -> Result<bool, Error> {
        if self.kind == ForkKind::Data {
            return Ok(bytes <= self.inline_size());
        }
        let shape = ForkShape {
            data_format: self.inode.data.format(),
            data_used: self.inode.data.bytes_used(),
            forkoff: self.inode.core.forkoff,
        };
        let units = fork_offset::fit(self.trans.geometry(), &shape, bytes);
        match units {
            Some(units) => self.set_fork_offset(units).map(|()| true),
            None => Ok(false),
        }
    }
}
