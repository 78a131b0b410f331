//! The snapshots in a qcow2 image, and the disk as it was at one of them.
//!
//! A snapshot is another first table of clusters. Its clusters are read here: `imago` reads the present
//! table alone. Layout: docs/interop/qcow2 in QEMU's documentation.

use crate::blocks::Blocks;
use crate::disk::{Disk, Stored, by_blocks, invalid};
use crate::field::{be32, be64};
use crate::header::Image;
use crate::inflate::{Wrapping, inflate};
use std::io;

/// Longest list of snapshots, in bytes of names and all else.
const MAX_BYTES: u64 = 64 << 20;
/// Snapshots that an image may have, as QEMU takes them.
const MAX_SNAPSHOTS: u32 = 65_536;
const FIXED: u64 = 40;

const COMPRESSED: u64 = 1 << 62;
const ZEROES: u64 = 1;
/// The place in an entry of a table.
const PLACE: u64 = 0x00ff_ffff_ffff_fe00;

/// A snapshot in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What it is called by its maker, mostly a number; unique.
    pub id: String,
    /// Its name, which others may have, too.
    pub name: String,
    /// The length of the disk then, in bytes; that of now if the image does not say it.
    pub bytes: u64,
    /// When it was made, in seconds since 1970.
    pub seconds: u32,
    pub(crate) table_at: u64,
    pub(crate) entries: u32,
}

impl Snapshot {
    /// The table of the disk as it is now, by the header of an image.
    pub(crate) fn present(header: &[u8]) -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            bytes: be64(header, 24),
            seconds: 0,
            table_at: be64(header, 40),
            entries: be32(header, 36),
        }
    }
}

/// The snapshots that the header of an image names. `read` reads bytes at a place.
pub(crate) fn list<E>(
    header: &[u8],
    read: impl Fn(u64, u64) -> Result<Vec<u8>, E>,
    fault: impl Fn(String) -> E,
) -> Result<Vec<Snapshot>, E> {
    let (count, mut at) = (be32(header, 60), be64(header, 64));
    if count > MAX_SNAPSHOTS {
        return Err(fault(format!("{count} snapshots")));
    }
    let end = at.saturating_add(MAX_BYTES);
    let mut snapshots = Vec::new();
    for _ in 0..count {
        let fixed = read(at, FIXED)?;
        let be16 = |at: usize| u64::from(fixed[at]) << 8 | u64::from(fixed[at + 1]);
        let (extra, id, name) = (u64::from(be32(&fixed, 36)), be16(12), be16(14));
        let names_at = at.saturating_add(FIXED + extra);
        // The second of further fields.
        let bytes = match extra {
            0..16 => be64(header, 24),
            _ => be64(&read(at + FIXED, 16)?, 8),
        };
        let names = read(names_at, id + name)?;
        let (id_text, name_text) = names.split_at(id as usize);
        snapshots.push(Snapshot {
            id: String::from_utf8_lossy(id_text).into_owned(),
            name: String::from_utf8_lossy(name_text).into_owned(),
            bytes,
            seconds: be32(&fixed, 16),
            table_at: be64(&fixed, 0),
            entries: be32(&fixed, 8),
        });
        at = names_at.saturating_add(id + name).next_multiple_of(8);
        if at > end {
            return Err(fault(format!("{count} snapshots take more than 64 MiB")));
        }
    }
    Ok(snapshots)
}

/// The disk as it was at a snapshot.
pub(crate) struct Past {
    stored: Stored,
    snapshot: Snapshot,
    cluster_bits: u32,
    /// What the image has the changes to.
    backing: Option<Image>,
    blocks: Blocks,
}

impl Past {
    /// Of an image whose header was found to be sound; the error says what cannot be.
    pub(crate) fn new(
        stored: Stored,
        header: &[u8],
        snapshot: Snapshot,
        backing: Option<Image>,
    ) -> Result<Self, String> {
        let cluster_bits = be32(header, 20);
        let Snapshot { table_at, entries, bytes, .. } = snapshot;
        let needed = bytes.div_ceil(1 << (2 * cluster_bits - 3));
        let end = table_at.checked_add(u64::from(entries) * 8);
        if needed > u64::from(entries) || end.is_none_or(|end| end > stored.length()) {
            return Err(format!("a snapshot with a table of {entries} entries at byte {table_at}"));
        }
        Ok(Self { stored, snapshot, cluster_bits, backing, blocks: Blocks::default() })
    }

    /// The entry of a cluster.
    fn entry(&self, cluster: u64) -> io::Result<u64> {
        let word = |at| self.stored.array(at).map(u64::from_be_bytes);
        let in_table = 1 << (self.cluster_bits - 3);
        let table = word(self.snapshot.table_at + 8 * (cluster / in_table))? & PLACE;
        if table == 0 { Ok(0) } else { word(table + 8 * (cluster % in_table)) }
    }

    fn decompress(&self, entry: u64) -> io::Result<Vec<u8>> {
        let bits = 62 - (self.cluster_bits - 8);
        let at = entry & ((1 << bits) - 1);
        let sectors = (entry & (COMPRESSED - 1)) >> bits;
        // The last sector may be cut.
        let length = ((sectors + 1) * 512 - at % 512).min(self.stored.length().saturating_sub(at));
        let mut packed = vec![0; length as usize];
        self.stored.fill(at, &mut packed)?;
        inflate(&packed, 1 << self.cluster_bits, Wrapping::None)
    }

    fn below(&self, at: u64, piece: &mut [u8]) -> io::Result<()> {
        let Some(image) = &self.backing else {
            piece.fill(0);
            return Ok(());
        };
        let there = image.size().saturating_sub(at).min(piece.len() as u64);
        let (front, behind) = piece.split_at_mut(there as usize);
        behind.fill(0);
        if front.is_empty() { Ok(()) } else { image.read(front, at) }
    }
}

impl Disk for Past {
    fn bytes(&self) -> u64 {
        self.snapshot.bytes
    }

    fn read(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        let cluster_bytes = 1 << self.cluster_bits;
        by_blocks(at, memory, cluster_bytes, |cluster, offset, piece| {
            let entry = self.entry(cluster)?;
            if entry & COMPRESSED != 0 {
                let block = self.blocks.get(entry, || self.decompress(entry))?;
                let offset = offset as usize;
                piece.copy_from_slice(&block[offset..offset + piece.len()]);
                return Ok(());
            }
            if entry & ZEROES != 0 {
                piece.fill(0);
                return Ok(());
            }
            match entry & PLACE {
                0 => self.below(cluster * cluster_bytes + offset, piece),
                place if place % cluster_bytes == 0 => self.stored.fill(place + offset, piece),
                place => Err(invalid(format!("a cluster at byte {place}"))),
            }
        })
    }
}
