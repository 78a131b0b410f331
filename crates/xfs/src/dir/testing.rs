//! A directory fork in memory, and a check of everything that must hold in it.

pub(super) mod check;

use crate::cache::{BufferAddress, BufferRef, EditGuard, MetaBuffer};
use crate::da::{DaFork, DaForkMut};
use crate::error::Error;
use crate::format::dir_layout::DirLayout;
use crate::format::{
    BufferKind, Features, Incompat, VersionBits, da_block, dir_block, dir_data, dir_free, dir_leaf,
};
use crate::geometry::Geometry;
use crate::units::{AgInode, AgNumber, FileBlock, FsBlock, InodeNumber};
use std::collections::BTreeMap;
use undercroft_block::Sector;
use uuid::Uuid;

/// A volume shape to test on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) block_log: u8,
    pub(super) dir_block_log: u8,
    pub(super) crc: bool,
    pub(super) ftype: bool,
    pub(super) fold_case: bool,
}

impl Shape {
    pub(super) const fn v5(block_log: u8, dir_block_log: u8) -> Self {
        Self { block_log, dir_block_log, crc: true, ftype: true, fold_case: false }
    }

    pub(super) const fn v4(block_log: u8, dir_block_log: u8, ftype: bool) -> Self {
        Self { block_log, dir_block_log, crc: false, ftype, fold_case: false }
    }

    pub(super) fn geometry(self) -> Geometry {
        let mut features = Features { crc: self.crc, ..Features::default() };
        features.incompat.set(Incompat::FTYPE, self.ftype);
        features.version.set(VersionBits::BORG, self.fold_case);
        let (ag_count, ag_block_log) = (1 << 20, 20);
        Geometry {
            block_log: self.block_log,
            sector_log: 9,
            inode_log: if self.crc { 9 } else { 8 },
            dir_block_log: self.dir_block_log,
            blocks: u64::from(ag_count) << ag_block_log,
            ag_blocks: 1 << ag_block_log,
            ag_count,
            ag_block_log,
            features,
            meta_uuid: Uuid::from_u128(0x1234),
            uuid: Uuid::from_u128(0x1234),
            log_start: FsBlock::NULL,
            log_blocks: 0,
            log_stripe_unit: 1,
            inode_alignment: 1,
            sparse_alignment: 0,
            stripe_unit: 0,
            stripe_width: 0,
            inode_max_percent: 25,
            root_inode: InodeNumber(128),
        }
    }
}

/// A directory fork whose blocks live in a map.
#[derive(Debug)]
pub(super) struct TestFork {
    geometry: Geometry,
    pub(super) local: Option<Vec<u8>>,
    pub(super) inline_size: usize,
    size: u64,
    /// By first file block; the flag says whether a verifier has seen the bytes.
    pub(super) blocks: BTreeMap<u64, (BufferRef, bool)>,
    next_sector: u64,
    pub(super) reads: u64,
}

impl TestFork {
    pub(super) fn new(shape: Shape, inline_size: usize) -> Self {
        let geometry = shape.geometry();
        let mut fork = Self {
            geometry,
            local: None,
            inline_size,
            size: 0,
            blocks: BTreeMap::new(),
            next_sector: 1000,
            reads: 0,
        };
        super::init(&mut fork, InodeNumber(128)).unwrap();
        fork
    }

    /// A valid inode number, wide if `seed` says so.
    pub(super) fn inode_from(&self, seed: u32) -> InodeNumber {
        let ag = if seed.is_multiple_of(7) { seed % (1 << 20) } else { 0 };
        self.geometry.inode_number(AgNumber(ag), AgInode(1024 + seed % 100_000))
    }

    /// Reads every block as a new mount would: kinds from magics, verifiers before use.
    pub(super) fn reload(&mut self) {
        for (buffer, verified) in self.blocks.values_mut() {
            let kind = kind_on_disk(&buffer.read(), self.geometry.features.crc);
            let bytes = buffer.read().to_vec();
            *buffer = MetaBuffer::new(buffer.address().clone(), kind, bytes);
            *verified = false;
        }
    }

    /// Overwrites bytes of a block behind the back of the directory code.
    pub(super) fn damage(&mut self, block: u64, change: impl FnOnce(&mut [u8])) {
        let (buffer, verified) = self.blocks.get_mut(&block).unwrap();
        let kind = buffer.read().kind();
        let mut bytes = buffer.read().to_vec();
        change(&mut bytes);
        *buffer = MetaBuffer::new(buffer.address().clone(), kind, bytes);
        *verified = false;
    }
}

fn kind_on_disk(bytes: &[u8], crc: bool) -> BufferKind {
    [BufferKind::DirBlock, BufferKind::DirData, BufferKind::DirFree, BufferKind::DaAny]
        .into_iter()
        .find_map(|kind| da_block::resolve_magic(bytes, kind, crc).ok())
        .expect("a block of a directory has a magic number")
}

/// The work of the cache after a read and before a write.
pub(super) fn verify(kind: BufferKind, bytes: &[u8], geometry: &Geometry) -> Result<(), String> {
    let layout = DirLayout::new(geometry);
    match kind {
        BufferKind::DirBlock => dir_block::verify_block(bytes, layout, geometry),
        BufferKind::DirData => dir_data::verify_data(bytes, layout, geometry),
        BufferKind::DirFree => dir_free::verify_free(bytes, layout),
        BufferKind::DirLeaf1 => dir_leaf::verify_leaf1(bytes, layout),
        BufferKind::DirLeafN => dir_leaf::verify_leaf_n(bytes, layout),
        BufferKind::DaNode => da_block::verify_node(bytes, layout.da()),
        _ => Err(format!("{kind:?} is no directory block")),
    }
}

impl DaFork for TestFork {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn inode(&self) -> InodeNumber {
        InodeNumber(131_072)
    }

    fn block_blocks(&self) -> u32 {
        self.geometry.dir_block_blocks()
    }

    fn local(&self) -> Option<&[u8]> {
        self.local.as_deref()
    }

    fn inline_size(&self) -> usize {
        self.inline_size
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn end(&mut self) -> Result<FileBlock, Error> {
        let len = u64::from(self.block_blocks());
        Ok(FileBlock(self.blocks.last_key_value().map_or(0, |(block, _)| block + len)))
    }

    fn next_mapped(&mut self, from: FileBlock) -> Result<Option<FileBlock>, Error> {
        Ok(self.blocks.range(from.0..).next().map(|(block, _)| FileBlock(*block)))
    }

    fn read(&mut self, block: FileBlock, kind: BufferKind) -> Result<Option<BufferRef>, Error> {
        self.reads += 1;
        let crc = self.geometry.features.crc;
        let Some((buffer, verified)) = self.blocks.get_mut(&block.0) else { return Ok(None) };
        let checked = if *verified {
            let known = buffer.read().kind();
            let fits = known == kind || kind == BufferKind::DaAny;
            if fits { Ok(known) } else { Err(format!("{known:?} instead of {kind:?}")) }
        } else {
            let bytes = buffer.read();
            da_block::resolve_magic(&bytes, kind, crc)
                .and_then(|kind| verify(kind, &bytes, &self.geometry).map(|()| kind))
        };
        match checked {
            Ok(kind) if !*verified => {
                let bytes = buffer.read().to_vec();
                *buffer = MetaBuffer::new(buffer.address().clone(), kind, bytes);
                *verified = true;
                Ok(Some(buffer.clone()))
            }
            Ok(_) => Ok(Some(buffer.clone())),
            Err(what) => Err(self.corrupt(block, what)),
        }
    }

    fn corrupt(&self, block: FileBlock, what: String) -> Error {
        Error::Fork { structure: "directory", inode: self.inode(), block, what }
    }
}

impl DaForkMut for TestFork {
    fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b> {
        EditGuard(buffer.content())
    }

    fn grow(&mut self, from: FileBlock, kind: BufferKind) -> Result<(FileBlock, BufferRef), Error> {
        let len = u64::from(self.block_blocks());
        assert!(from.0.is_multiple_of(len));
        let mut block = from.0;
        for used in self.blocks.range(from.0..).map(|(used, _)| *used) {
            if used != block {
                break;
            }
            block += len;
        }
        let bytes = self.geometry.dir_block_size();
        let address = BufferAddress::contiguous(Sector(self.next_sector), bytes as u32 / 512);
        self.next_sector += bytes as u64 / 512;
        let buffer = MetaBuffer::new(address, kind, vec![0; bytes]);
        self.blocks.insert(block, (buffer.clone(), true));
        Ok((FileBlock(block), buffer))
    }

    fn map(&mut self, _: FileBlock, _: u32) -> Result<FileBlock, Error> {
        unreachable!("directories map no blocks without buffers")
    }

    fn fresh(&mut self, _: FileBlock, _: BufferKind) -> Result<BufferRef, Error> {
        unreachable!("directories map no blocks without buffers")
    }

    fn unmap(&mut self, block: FileBlock, len: u32) -> Result<(), Error> {
        assert_eq!(len, self.block_blocks());
        match self.blocks.remove(&block.0) {
            Some(_) => Ok(()),
            None => Err(self.corrupt(block, "not mapped".into())),
        }
    }

    fn set_local(&mut self, content: Option<Vec<u8>>) -> Result<(), Error> {
        assert!(self.blocks.is_empty());
        assert!(content.as_ref().is_none_or(|content| content.len() <= self.inline_size));
        self.local = content;
        Ok(())
    }

    fn set_size(&mut self, size: u64) {
        self.size = size;
    }

    fn make_room(&mut self, bytes: usize) -> Result<bool, Error> {
        Ok(bytes <= self.inline_size)
    }
}
