//! Sound volumes that damage starts from, made once for each process, and the places in them where
//! metadata lives.

use crate::population;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use undercroft_block::{BlockDevice, MemoryDevice, Sector, read_exact_at};
use undercroft_xfs::format::bytes::{be16, be32};
use undercroft_xfs::format::{BufferKind, Header, INODE_MAGIC, stamp_inode_crc, symlink_blocks};
use undercroft_xfs::mkfs::{self, Feature, MkfsOptions, Preset};
use undercroft_xfs::units::{AgNumber, FsBlock, Lsn};
use undercroft_xfs::{Geometry, Volume};
use uuid::Uuid;

/// Bytes that are kept or left out together.
const CHUNK: u64 = 4096;
/// Bytes of the only record in the journal of a new volume.
const LOG_RECORD: usize = 1024;

/// The kind of a piece of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A verified buffer, or one inode of a cluster.
    Buffer(BufferKind),
    /// The beginning of the journal, which has no checksum that readers look at.
    Log,
}

/// A piece of metadata: a header sector, a block, an inode.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Where it starts, in bytes.
    pub start: u64,
    /// Its kind.
    pub content: Content,
    /// The sound bytes.
    pub bytes: Vec<u8>,
}

/// A sound volume.
#[derive(Debug)]
pub struct Sample {
    /// Its sizes.
    pub geometry: Geometry,
    /// Length in bytes.
    pub bytes: u64,
    /// All metadata that is in use.
    pub pieces: Vec<Piece>,
    /// Chunks that are not zero, by number.
    chunks: BTreeMap<u64, Vec<u8>>,
}

/// The volumes: they differ in block size, directory block size, inode size and features, so that
/// each form of each structure is in one of them.
pub fn samples() -> &'static [Sample] {
    static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
        let base = MkfsOptions::new(32 << 20, Uuid::from_u128(0x5a5a));
        let small_blocks =
            MkfsOptions { block_size: 1024, dir_block_size: Some(4096), ..base.clone() };
        let old = MkfsOptions {
            preset: Preset::Linux4_19,
            features: vec![(Feature::Finobt, false), (Feature::Sparse, false)],
            block_size: 2048,
            inode_size: 1024,
            ..base.clone()
        };
        let large_sectors =
            MkfsOptions { sector_size: 4096, block_size: 16384, size: 64 << 20, ..base.clone() };
        [base, small_blocks, old, large_sectors].iter().map(Sample::make).collect()
    });
    &SAMPLES
}

impl Sample {
    fn make(options: &MkfsOptions) -> Self {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(options.size));
        let plan = mkfs::plan(options).expect("the options are valid");
        let root = population::directory();
        let volume = mkfs::begin(&device, plan, &root).expect("a device in memory has room");
        population::fill(&volume).expect("the volume has room");
        mkfs::finish(&volume, false).expect("a device in memory does not fail");
        drop(volume);
        let volume = Volume::open(Arc::clone(&device)).expect("the volume is sound");
        let geometry = volume.geometry().clone();
        let mut sample =
            Self { geometry, bytes: options.size, pieces: Vec::new(), chunks: BTreeMap::new() };
        for number in 0..options.size / CHUNK {
            let mut bytes = vec![0; CHUNK as usize];
            read_exact_at(device.as_ref(), Sector(number * CHUNK / 512), &mut bytes)
                .expect("a device in memory does not fail");
            if bytes.iter().any(|byte| *byte != 0) {
                sample.chunks.insert(number, bytes);
            }
        }
        sample.find_pieces();
        sample
    }

    /// Copies sound bytes from `start` on.
    pub(crate) fn read(&self, start: u64, bytes: &mut [u8]) {
        let (mut at, mut rest) = (start, bytes);
        while !rest.is_empty() {
            let inside = (at % CHUNK) as usize;
            let len = rest.len().min(CHUNK as usize - inside);
            let (part, after) = rest.split_at_mut(len);
            match self.chunks.get(&(at / CHUNK)) {
                Some(chunk) => part.copy_from_slice(&chunk[inside..inside + len]),
                None => part.fill(0),
            }
            (at, rest) = (at + len as u64, after);
        }
    }

    fn add_piece(&mut self, start: u64, content: Content, len: usize) {
        let mut bytes = vec![0; len];
        self.read(start, &mut bytes);
        self.pieces.push(Piece { start, content, bytes });
    }

    fn find_pieces(&mut self) {
        let geometry = self.geometry.clone();
        let headers = [BufferKind::Superblock, BufferKind::Agf, BufferKind::Agi, BufferKind::Agfl];
        for ag in (0..geometry.ag_count).map(AgNumber) {
            for (index, kind) in (0..).zip(headers) {
                let start = geometry.header_sector(ag, index).0 * 512;
                self.add_piece(start, Content::Buffer(kind), geometry.sector_size());
            }
        }
        let log = geometry.sector(geometry.log_start).0 * 512;
        self.add_piece(log, Content::Log, LOG_RECORD);
        let block_size = geometry.block_size();
        let header_len = 4 * geometry.sector_size() as u64;
        let group_len = u64::from(geometry.ag_blocks) << geometry.block_log;
        let mut start = 0;
        while start + block_size as u64 <= self.bytes {
            let mut bytes = vec![0; block_size];
            self.read(start, &mut bytes);
            let is_header = start % group_len < header_len;
            let kind = if is_header { None } else { kind_of(&bytes) };
            let mut len = block_size;
            match kind {
                None => {}
                Some(BufferKind::InodeCluster) => self.add_inodes(start),
                Some(kind) => {
                    len = match kind {
                        BufferKind::Symlink => {
                            let target = be32(&bytes, 8) as usize;
                            symlink_blocks(&geometry, target) as usize * block_size
                        }
                        BufferKind::DirBlock
                        | BufferKind::DirData
                        | BufferKind::DirFree
                        | BufferKind::DirLeaf1
                        | BufferKind::DirLeafN => geometry.dir_block_size(),
                        // Attribute trees are rare and have single blocks: only those of directories
                        // matter where the sizes differ.
                        BufferKind::DaNode => self.node_len(start),
                        _ => block_size,
                    };
                    self.add_piece(start, Content::Buffer(kind), len);
                }
            }
            start += len as u64;
        }
    }

    /// Length of a hash tree node: that for which its checksum is right.
    fn node_len(&self, start: u64) -> usize {
        let geometry = &self.geometry;
        let header = Header::of(BufferKind::DaNode).expect("hash tree nodes have a header");
        let sizes = [geometry.block_size(), geometry.dir_block_size()];
        let fits = |len: &usize| {
            let mut bytes = vec![0; *len];
            self.read(start, &mut bytes);
            header.verify(&bytes, Sector(start / 512), &geometry.meta_uuid, *len).is_ok()
        };
        sizes.into_iter().find(fits).expect("the sample is sound")
    }

    /// The inodes of a block that are in use, and the first free one.
    fn add_inodes(&mut self, start: u64) {
        let size = self.geometry.inode_size();
        let mut free = 0;
        for index in 0..self.geometry.inodes_per_block() as usize {
            let at = start + (index * size) as u64;
            self.add_piece(at, Content::Buffer(BufferKind::InodeCluster), size);
            let mode = self.pieces.last().map_or(0, |piece| be16(&piece.bytes, 2));
            free += usize::from(mode == 0);
            if mode == 0 && free > 1 {
                self.pieces.pop();
            }
        }
    }

    /// What a pointer to a piece looks like in metadata: the block of the volume (8 bytes), the
    /// block of the group or the inode (4 bytes), the inode in its chunk (2 bytes).
    pub(crate) fn pointer(&self, piece: &Piece, width: usize) -> u64 {
        let geometry = &self.geometry;
        let block = piece.start >> geometry.block_log;
        let (ag, ag_block) =
            (block / u64::from(geometry.ag_blocks), block % u64::from(geometry.ag_blocks));
        let fs_block = ag << geometry.ag_block_log | ag_block;
        let in_block = piece.start & ((1 << geometry.block_log) - 1);
        let inode = fs_block << geometry.inodes_per_block_log() | in_block >> geometry.inode_log;
        match (piece.content, width) {
            (Content::Buffer(BufferKind::InodeCluster), _) => inode,
            (_, 8) => FsBlock(fs_block).0,
            _ => ag_block,
        }
    }
}

impl Piece {
    /// Repairs the checksum of `bytes`, which take the place of the sound ones.
    pub(crate) fn stamp(&self, bytes: &mut [u8], geometry: &Geometry) {
        match self.content {
            Content::Log => {}
            Content::Buffer(BufferKind::InodeCluster) => stamp_inode_crc(bytes),
            Content::Buffer(kind) => {
                if let Some(header) = Header::of(kind) {
                    header.stamp(bytes, Lsn(0), geometry.block_size());
                }
            }
        }
    }
}

/// The content of a block of a sound v5 volume, by its magic number.
fn kind_of(bytes: &[u8]) -> Option<BufferKind> {
    if be16(bytes, 0) == INODE_MAGIC {
        return Some(BufferKind::InodeCluster);
    }
    BufferKind::of_block(bytes)
}
