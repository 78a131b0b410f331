//! Whether the reference counts of a qcow2 image are true, looked at before it is changed.
//!
//! A cluster in use that counts as free would be given out, and what is in it lost; so would one that two
//! places take for their own. `qemu-img check -r all` renews the counts, and keeps what can be kept. Layout:
//! docs/interop/qcow2 in QEMU's documentation.

use crate::field::{be32, be64};
use crate::snapshot::{self, Snapshot};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Blocks of counts that are kept in memory.
const KEPT_BLOCKS: usize = 256;

/// Bits of an entry: the cluster has one reference, is compressed, reads as zeroes.
const ONLY: u64 = 1 << 63;
const COMPRESSED: u64 = 1 << 62;
const ZEROES: u64 = 1;
/// The place in an entry.
const PLACE: u64 = 0x00ff_ffff_ffff_fe00;

/// What is not as it has to be; or the file cannot be read.
#[derive(Debug)]
pub(crate) enum Lie {
    Read(io::Error),
    Found(String),
}

impl From<io::Error> for Lie {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// An image whose header was found to be sound.
struct Counts<'f> {
    image: Bytes<'f>,
    cluster_bits: u32,
    /// Bits of a count, as a power of two.
    order: u32,
    /// Where the blocks of counts are.
    table: Vec<u64>,
    blocks: HashMap<u64, Vec<u8>>,
    /// A bit for each cluster that one place has for its own.
    owned: Vec<u64>,
    clusters: u64,
}

/// The bytes of a file, whose length was asked for once.
#[derive(Clone, Copy)]
struct Bytes<'f> {
    file: &'f File,
    length: u64,
}

/// A table of clusters: where it is, and how many entries it has.
#[derive(Clone, Copy)]
struct Table {
    at: u64,
    entries: u32,
    /// That of the disk, and not of a snapshot.
    is_active: bool,
}

/// Looks at all tables of an image that begins with `header`, which was found to be sound.
pub(crate) fn check(file: &File, header: &[u8]) -> Result<(), Lie> {
    let cluster_bits = be32(header, 20);
    let order = if be32(header, 4) == 2 { 4 } else { be32(header, 96) };
    if order > 6 {
        return Err(Lie::Found(format!("reference counts of 2^{order} bits")));
    }
    let image = Bytes { file, length: file.metadata()?.len() };
    let clusters = image.length.div_ceil(1 << cluster_bits);
    let (table_at, table_bytes) = (be64(header, 48), u64::from(be32(header, 56)) << cluster_bits);
    let table = words(&image.read(table_at, table_bytes)?);
    let owned = vec![0; clusters.div_ceil(64) as usize];
    let blocks = HashMap::new();
    let mut counts = Counts { image, cluster_bits, order, table, blocks, owned, clusters };
    counts.own(0, 1, "the header")?;
    counts.own(table_at, table_bytes, "the table of reference counts")?;
    for at in counts.table.clone().into_iter().filter(|at| *at != 0) {
        counts.own(at, 1 << cluster_bits, "a block of reference counts")?;
    }
    let active = Table { at: be64(header, 40), entries: be32(header, 36), is_active: true };
    counts.table(active)?;
    let read = |at, bytes| image.read(at, bytes);
    for Snapshot { table_at, entries, .. } in snapshot::list(header, read, Lie::Found)? {
        counts.table(Table { at: table_at, entries, is_active: false })?;
    }
    Ok(())
}

impl Counts<'_> {
    /// A first table, its second ones, and all clusters that those name.
    fn table(&mut self, table: Table) -> Result<(), Lie> {
        let what = "a table of clusters";
        self.take(table.at, u64::from(table.entries) * 8, what, table.is_active)?;
        for entry in words(&self.image.read(table.at, u64::from(table.entries) * 8)?) {
            let at = entry & PLACE;
            if at == 0 {
                continue;
            }
            let is_own = table.is_active && entry & ONLY != 0;
            self.take(at, 1 << self.cluster_bits, what, is_own)?;
            for entry in words(&self.image.read(at, 1 << self.cluster_bits)?) {
                self.data(entry, is_own)?;
            }
        }
        Ok(())
    }

    /// The cluster of an entry.
    fn data(&mut self, entry: u64, is_own: bool) -> Result<(), Lie> {
        let what = "a cluster of data";
        if entry & COMPRESSED != 0 {
            let bits = 62 - (self.cluster_bits - 8);
            let at = entry & ((1 << bits) - 1);
            let sectors = (entry & (COMPRESSED - 1)) >> bits;
            return self.take(at, (sectors + 1) * 512 - at % 512, "a compressed cluster", false);
        }
        let at = entry & PLACE;
        // In version 3 a cluster of zeroes may have a place, too.
        if at == 0 || entry & !(PLACE | ONLY | ZEROES) != 0 {
            let is_known = entry & !(PLACE | ONLY | ZEROES) == 0;
            let wrong = || Err(Lie::Found(format!("{what} has an entry of {entry:#x}")));
            return if is_known { Ok(()) } else { wrong() };
        }
        self.take(at, 1 << self.cluster_bits, what, is_own && entry & ONLY != 0)
    }

    fn own(&mut self, at: u64, bytes: u64, what: &'static str) -> Result<(), Lie> {
        self.take(at, bytes, what, true)
    }

    /// Takes in that a range is in use, by one place alone if that `is_own`.
    fn take(&mut self, at: u64, bytes: u64, what: &str, is_own: bool) -> Result<(), Lie> {
        let (first, end) =
            (at >> self.cluster_bits, at.saturating_add(bytes).div_ceil(1 << self.cluster_bits));
        if is_own && !at.is_multiple_of(1 << self.cluster_bits) {
            return Err(Lie::Found(format!("{what} at byte {at} does not begin with a cluster")));
        }
        if end > self.clusters {
            return Err(Lie::Found(format!("{what} at byte {at} is behind the end of the file")));
        }
        for cluster in first..end {
            let count = self.count(cluster)?;
            if count == 0 || is_own && count != 1 {
                let expected = if is_own { "one" } else { "at least one" };
                return Err(Lie::Found(format!(
                    "{what} at byte {at} has {count} references, and should have {expected}"
                )));
            }
            // In range: the cluster is in the file.
            let (word, bit) = (&mut self.owned[(cluster / 64) as usize], 1 << (cluster % 64));
            if is_own && *word & bit != 0 {
                return Err(Lie::Found(format!("{what} at byte {at} is in use twice")));
            }
            *word |= if is_own { bit } else { 0 };
        }
        Ok(())
    }

    /// The references to a cluster.
    fn count(&mut self, cluster: u64) -> Result<u64, Lie> {
        // A block has the counts of as many clusters as it has room for.
        let in_block = 1 << (self.cluster_bits + 3 - self.order);
        let (block, index) = (cluster / in_block, cluster % in_block);
        let at = usize::try_from(block).ok().and_then(|block| self.table.get(block).copied());
        let at = match at {
            None | Some(0) => return Ok(0),
            Some(at) => at,
        };
        if self.blocks.len() >= KEPT_BLOCKS && !self.blocks.contains_key(&at) {
            self.blocks.clear();
        }
        let bytes = match self.blocks.entry(at) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(free) => free.insert(self.image.read(at, 1 << self.cluster_bits)?),
        };
        let bit = index << self.order;
        let start = (bit / 8) as usize;
        if self.order < 3 {
            let mask = (1 << (1 << self.order)) - 1;
            return Ok(u64::from(bytes[start] >> (bit % 8)) & mask);
        }
        let field = &bytes[start..start + (1 << (self.order - 3))];
        Ok(field.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

impl Bytes<'_> {
    /// A range of them, which has to be there.
    fn read(self, at: u64, bytes: u64) -> Result<Vec<u8>, Lie> {
        let Self { file, length } = self;
        if at.checked_add(bytes).is_none_or(|end| end > length.next_multiple_of(512)) {
            return Err(Lie::Found(format!(
                "{bytes} bytes at byte {at} are behind the end of the file"
            )));
        }
        // At most what the file has.
        let mut memory = vec![0; bytes as usize];
        let there = length.saturating_sub(at).min(bytes) as usize;
        file.read_exact_at(&mut memory[..there], at)?;
        Ok(memory)
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_be_bytes(*word)).collect()
}
