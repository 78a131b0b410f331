//! One pass over a device: the metadata of all volumes that are on it, wherever they are.
//!
//! Blocks of version 5 say what they are, whose, and where they belong, and inodes say their number.
//! So nothing is needed of a volume to find its pieces: neither a superblock nor a tree, not even its
//! start. Pieces of version 4 say little of that; they are put to a volume by their place, where a copy of
//! its superblock is left. The scan keeps an index of places, no contents: some 32 bytes for a block, and as many for a
//! run of inodes. What the index names is read again when its meaning is asked for.

mod shape;
mod traces;
mod unmarked;
mod window;

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use undercroft_block::BlockDevice;
use undercroft_xfs_format::units::InodeNumber;
use undercroft_xfs_format::{
    BufferKind, Header, INODE_CRC_OFFSET, INODE_MAGIC, LogRecordHeader, Superblock, bytes,
    checksum, log_record::LOG_BLOCK,
};
use uuid::Uuid;

use crate::progress::{Progress, Step};
use crate::stream::{joined, read_in_order};
pub use traces::Traces;
pub(crate) use traces::{BlockTrace, InodeRun};
use unmarked::Unmarked;
use window::Window;

/// Volumes that are told apart on one device. Pieces of more are not looked at.
const MOST_VOLUMES: usize = 1024;

/// Ranges that could not be read are told up to this number; further ones widen the last.
const MOST_UNREADABLE: usize = 1 << 16;

/// Sizes of blocks of version 5, and of what one header covers.
const SIZES: Range<u8> = 9..17;

/// Where the volume of an inode of version 3 is named, and its number.
const INODE_UUID: usize = 160;
const INODE_NUMBER: usize = 152;

/// What a pass over a device found.
#[derive(Debug, Default)]
pub struct Scan {
    /// The volumes, those with the most files first.
    pub volumes: Vec<Traces>,
    /// Sectors that could not be read, in ascending order.
    pub unreadable: Vec<Range<u64>>,
    /// Sectors that begin as inodes of version 4 do, whosever they are.
    pub unmarked: u64,
}

impl Scan {
    /// Reads the sectors in `ranges` of a device once, in order. Elsewhere are holes.
    ///
    /// `report` is told how many bytes of how many were read.
    pub fn read(
        device: &Arc<dyn BlockDevice>,
        ranges: &[Range<u64>],
        report: &mut dyn FnMut(Step, u64, u64),
    ) -> Self {
        let end = device.capacity().0;
        let ranges = joined(ranges.iter().map(|range| range.start.min(end)..range.end.min(end)));
        let all = ranges.iter().map(|range| (range.end - range.start) * 512).sum();
        let mut progress = Progress::new(report);
        progress.begin(Step::Device, all);
        let (mut finder, mut window) = (Finder::default(), Window::default());
        let mut unreadable: Vec<Range<u64>> = Vec::new();
        read_in_order(device, ranges, 1, |sectors, piece| {
            progress.read((sectors.end - sectors.start) * 512);
            match piece {
                Ok(piece) => window.add(sectors.start, piece, |at, rest| finder.piece(at, rest)),
                Err(_) => {
                    let is_full = unreadable.len() == MOST_UNREADABLE;
                    match unreadable.last_mut() {
                        Some(last) if is_full || last.end == sectors.start => {
                            last.end = sectors.end;
                        }
                        _ => unreadable.push(sectors),
                    }
                }
            }
        });
        window.finish(|at, rest| finder.piece(at, rest));
        let unmarked = finder.unmarked.inode_sectors();
        Self { volumes: finder.finish(), unreadable, unmarked }
    }

    /// The volume of a UUID.
    #[must_use]
    pub fn volume(&self, uuid: Uuid) -> Option<&Traces> {
        self.volumes.iter().find(|traces| traces.uuid == uuid)
    }
}

/// Finds the pieces of volumes.
#[derive(Default)]
struct Finder {
    volumes: Vec<Traces>,
    by_uuid: FxHashMap<Uuid, usize>,
    unmarked: Unmarked,
}

impl Finder {
    fn volume(&mut self, uuid: Uuid) -> Option<&mut Traces> {
        if let Some(index) = self.by_uuid.get(&uuid) {
            return self.volumes.get_mut(*index);
        }
        if self.volumes.len() == MOST_VOLUMES {
            return None;
        }
        self.by_uuid.insert(uuid, self.volumes.len());
        self.volumes.push(Traces { uuid, ..Traces::default() });
        self.volumes.last_mut()
    }

    /// Looks at what begins at a sector, and goes on with `rest`; returns the length of a piece that
    /// is whole.
    fn piece(&mut self, sector: u64, rest: &[u8]) -> Option<usize> {
        if bytes::be16(rest, 0) == INODE_MAGIC {
            return self.inode(sector, rest);
        }
        match rest.first_chunk()? {
            b"XFSB" => self.superblock(sector, rest),
            b"XAGF" => self.group_header(sector, rest, BufferKind::Agf),
            b"XAGI" => self.group_header(sector, rest, BufferKind::Agi),
            b"XAFL" => self.group_header(sector, rest, BufferKind::Agfl),
            [0xfe, 0xed, 0xba, 0xbe] => self.record(sector, rest),
            b"XD2B" | b"XD2D" => {
                self.unmarked.add_directory(sector, rest);
                None
            }
            _ => match BufferKind::of_block(rest) {
                Some(kind) => self.block(sector, rest, kind),
                None => {
                    self.unmarked.add_other(sector, rest);
                    None
                }
            },
        }
    }

    fn inode(&mut self, sector: u64, rest: &[u8]) -> Option<usize> {
        // The version; others have no checksum.
        if rest[4] != 3 {
            self.unmarked.add_inode(sector, rest);
            return None;
        }
        let uuid = Uuid::from_bytes(bytes::array(rest, INODE_UUID));
        let known = self.by_uuid.get(&uuid).and_then(|index| self.volumes[*index].inode_log);
        let sizes = known.map_or(9..12, |log| log..log + 1);
        let len = checksum::matching_len(rest, INODE_CRC_OFFSET, sizes.map(|log| 1 << log))?;
        let number = InodeNumber(bytes::be64(rest, INODE_NUMBER));
        self.volume(uuid)?.add_inode(sector, number, &rest[..len]);
        Some(len)
    }

    fn superblock(&mut self, sector: u64, rest: &[u8]) -> Option<usize> {
        let superblock = Superblock::decode(&rest[..rest.len().min(32 << 10)]).ok()?;
        let len = 1 << superblock.sector_log;
        self.volume(superblock.geometry().meta_uuid)?.add_superblock(sector, superblock);
        Some(len)
    }

    fn group_header(&mut self, sector: u64, rest: &[u8], kind: BufferKind) -> Option<usize> {
        let header = Header::of(kind)?;
        let Some(len) = header.length(rest, SIZES.map(|log| 1 << log)) else {
            if kind != BufferKind::Agfl {
                self.unmarked.add_header(sector, rest, kind);
            }
            return None;
        };
        let ag = header.owner(rest)?;
        self.volume(header.volume(rest))?.add_group_header(sector, ag);
        Some(len)
    }

    fn record(&mut self, sector: u64, rest: &[u8]) -> Option<usize> {
        let header = LogRecordHeader::decode(rest.get(..LOG_BLOCK)?)?;
        header.check(header.uuid).ok()?;
        // Records are of the visible UUID, which most volumes stamp into metadata as well.
        self.volume(header.uuid)?.add_record(sector, &header);
        None
    }

    fn block(&mut self, sector: u64, rest: &[u8], kind: BufferKind) -> Option<usize> {
        let header = Header::of(kind)?;
        let uuid = header.volume(rest);
        let known = self.by_uuid.get(&uuid).and_then(|index| self.volumes[*index].size_of(kind));
        let len = match known {
            Some(log) => header.length(rest, [1 << log]),
            None => header.length(rest, SIZES.map(|log| 1 << log)),
        }?;
        // A block that was copied elsewhere, before the start of any volume, is none.
        let start = sector.checked_sub(header.address(rest)?.0)?;
        let (owner, lsn) = (header.owner(rest)?, header.lsn(rest).unwrap_or_default());
        let trace = BlockTrace { sector, owner, lsn, start: 0, kind };
        self.volume(uuid)?.add_block(trace, start, len);
        Some(len)
    }

    fn finish(mut self) -> Vec<Traces> {
        let old = self.volumes.iter_mut().filter(|traces| traces.is_unmarked());
        old.for_each(|traces| self.unmarked.give(traces));
        // A UUID in the journal alone is no volume.
        self.volumes.retain(|traces| !traces.is_empty());
        self.volumes.sort_by_key(|traces| std::cmp::Reverse((traces.files, traces.block_count())));
        self.volumes
    }
}
