//! The new contents of the metadata blocks that recovery changes.
//!
//! Blocks are [read](super::reads) before the first change of them is met, and written when all is replayed, or
//! earlier when they take too much memory. A block is stamped with the position of the last
//! transaction that changed it, and with its checksum, when a transaction of another position
//! changes it or when it is written: transactions that start in one record all reach it
//! (docs/format/journal/replay.md#positions-and-checksums-in-structures).

use super::reads::{LONGEST, Reads, Wanted};
use crate::bytes::be32;
use crate::cache::BufferAddress;
use crate::error::Error;
use crate::format::{BufferItemType, BufferKind, Header};
use crate::geometry::Geometry;
use crate::units::Lsn;
use std::collections::BTreeMap;
use std::sync::Arc;
use undercroft_block::{Batch, Bio, BlockDevice, Buffer, Plug, Sector, read_exact_at};

/// Bytes of images above which those of complete transactions are written.
const MEMORY_LIMIT: usize = 256 << 20;
/// Longest write.
const WRITE_BYTES: usize = 32 << 10;

/// A block, or a cluster of inodes, as it will be.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) address: BufferAddress,
    pub(super) bytes: Vec<u8>,
    /// Position of the transactions whose changes are not stamped yet.
    group: Option<Lsn>,
    /// The kind that the block is stamped as; `None` for blocks without a stamp of their own.
    kind: Option<BufferKind>,
    changed: bool,
}

/// The blocks that recovery changes, by their first sector.
pub(super) struct Images {
    device: Arc<dyn BlockDevice>,
    reads: Reads,
    images: BTreeMap<Sector, Image>,
    bytes: usize,
    /// Blocks that were written.
    pub(super) written: u64,
}

impl Image {
    /// Whether changes of the transactions of position `lsn` are older than the block: it was
    /// written after them.
    ///
    /// The kind of the block is seen from its content, not from the item. Blocks without a
    /// position, and blocks of other volumes, are always older. So are blocks that a crash tore
    /// while they were written: each item holds all changes since the last write that was flushed,
    /// so applying all items mends the block, where Linux gives up.
    pub(super) fn is_newer(&mut self, lsn: Lsn, geometry: &Geometry) -> bool {
        if self.group == Some(lsn) {
            return false;
        }
        self.stamp(geometry);
        self.position(geometry).is_some_and(|own| own >= lsn)
    }

    /// Position of the last change, as the block itself says.
    fn position(&self, geometry: &Geometry) -> Option<Lsn> {
        let kind = found_kind(&self.bytes)?;
        let header = Header::of(kind)?;
        // A volume whose visible identifier was changed keeps the other one elsewhere.
        let volume = match kind {
            BufferKind::Superblock if geometry.meta_uuid != geometry.uuid => {
                uuid::Uuid::from_bytes(crate::bytes::array(&self.bytes, META_UUID_OFFSET))
            }
            _ => header.volume(&self.bytes),
        };
        if !header.checksum_matches(&self.bytes, geometry.block_size()) {
            return None;
        }
        let position = header.lsn(&self.bytes)?;
        let known = volume == geometry.meta_uuid && position != Lsn(0) && !position.is_null();
        known.then_some(position)
    }

    /// Says that the transactions of position `lsn` changed the block, which is of this kind now.
    pub(super) fn set_changed(&mut self, lsn: Lsn, kind: Option<BufferKind>) {
        (self.group, self.kind, self.changed) = (Some(lsn), kind, true);
    }

    /// Says that the block was changed, and that its stamps were taken care of.
    pub(super) fn set_stamped(&mut self) {
        self.changed = true;
    }

    /// Stamps the images changed so far.
    fn stamp(&mut self, geometry: &Geometry) {
        if let Some(lsn) = self.group.take()
            && let Some(kind) = self.kind.take()
            && let Some(header) = Header::of(kind)
        {
            header.stamp(&mut self.bytes, lsn, geometry.block_size());
        }
    }
}

/// Offset of the metadata identifier in a superblock whose volume has two.
const META_UUID_OFFSET: usize = 248;

/// What the content of a block says that it is, of the kinds that carry a position.
pub(super) fn found_kind(bytes: &[u8]) -> Option<BufferKind> {
    use BufferItemType as Type;
    let types = [
        Type::Superblock,
        Type::Agf,
        Type::Agi,
        Type::Agfl,
        Type::Tree,
        Type::DirBlock,
        Type::DirData,
        Type::DirFree,
        Type::Symlink,
        Type::DirLeaf1,
        Type::DirLeafN,
        Type::DaNode,
        Type::AttrLeaf,
    ];
    types.into_iter().find_map(|known| known.kind(bytes))
}

impl Images {
    /// No images yet, of blocks of which these are `wanted`.
    pub(super) fn new(device: Arc<dyn BlockDevice>, wanted: Wanted) -> Self {
        let reads = Reads::new(Arc::clone(&device), wanted);
        Self { device, reads, images: BTreeMap::new(), bytes: 0, written: 0 }
    }

    /// The image of the sectors at `address`, read if need be.
    ///
    /// # Errors
    /// The sectors are not on the device, or it failed.
    pub(super) fn get(
        &mut self,
        address: &BufferAddress,
        geometry: &Geometry,
    ) -> Result<&mut Image, Error> {
        let sector = address.first();
        if !self.images.get(&sector).is_some_and(|image| image.address == *address) {
            self.evict_overlapping(address, geometry)?;
            let bytes = self.read(address)?;
            self.insert(address.clone(), bytes);
        }
        Ok(self.images.get_mut(&sector).expect("it was just put there"))
    }

    /// An image of zeroes, independent of the device.
    pub(super) fn fresh(
        &mut self,
        address: &BufferAddress,
        geometry: &Geometry,
    ) -> Result<&mut Image, Error> {
        self.evict_overlapping(address, geometry)?;
        self.images.remove(&address.first()).inspect(|old| self.bytes -= old.bytes.len());
        self.insert(address.clone(), vec![0; address.len()]);
        Ok(self.images.get_mut(&address.first()).expect("it was just put there"))
    }

    /// The bytes at `sector`, if an image holds them.
    pub(super) fn peek(&self, sector: Sector) -> Option<&[u8]> {
        self.images.get(&sector).map(|image| &image.bytes[..])
    }

    fn insert(&mut self, address: BufferAddress, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        let (group, kind, changed) = (None, None, false);
        self.images.insert(address.first(), Image { address, bytes, group, kind, changed });
    }

    fn read(&mut self, address: &BufferAddress) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; address.len()];
        let mut rest = &mut bytes[..];
        for (sector, sectors) in address.parts() {
            let (part, others) = rest.split_at_mut(*sectors as usize * 512);
            match self.reads.take(*sector, *sectors) {
                Some(buffer) => part.copy_from_slice(&buffer),
                None => read_exact_at(self.device.as_ref(), *sector, part)?,
            }
            rest = others;
        }
        Ok(bytes)
    }

    /// Writes images that hold a part of `address` and go by another one: the blocks were freed
    /// and used for something else.
    fn evict_overlapping(
        &mut self,
        address: &BufferAddress,
        geometry: &Geometry,
    ) -> Result<(), Error> {
        for (first, sectors) in address.parts() {
            let from = Sector(first.0.saturating_sub(LONGEST.into()));
            let to = Sector(first.0.saturating_add(u64::from(*sectors)));
            let overlapping = self.images.range(from..to).filter(|(_, image)| {
                let parts = image.address.parts().iter();
                image.address != *address
                    && parts.clone().any(|(at, len)| *at < to && at.0 + u64::from(*len) > first.0)
            });
            let keys = overlapping.map(|(sector, _)| *sector).collect::<Vec<_>>();
            for key in keys {
                if let Some(image) = self.images.remove(&key) {
                    self.bytes -= image.bytes.len();
                    self.write([image].into_iter(), geometry)?;
                }
            }
        }
        Ok(())
    }

    /// Keeps memory within its bounds. To be called when all transactions of a position are
    /// replayed: images written then are whole.
    pub(super) fn balance(&mut self, geometry: &Geometry) -> Result<(), Error> {
        if self.bytes > MEMORY_LIMIT { self.write_all(geometry) } else { Ok(()) }
    }

    /// Stamps and writes everything that was changed, and forgets it.
    pub(super) fn write_all(&mut self, geometry: &Geometry) -> Result<(), Error> {
        self.bytes = 0;
        let images = std::mem::take(&mut self.images);
        self.write(images.into_values(), geometry)
    }

    fn write(
        &mut self,
        images: impl Iterator<Item = Image>,
        geometry: &Geometry,
    ) -> Result<(), Error> {
        let device = Arc::clone(&self.device);
        let (writes, plug) = (Batch::new(), Plug::new(&device));
        let mut run = Run::default();
        for mut image in images.filter(|image| image.changed) {
            image.stamp(geometry);
            self.written += 1;
            let mut rest = &image.bytes[..];
            for (sector, sectors) in image.address.parts() {
                let (part, others) = rest.split_at(*sectors as usize * 512);
                self.reads.forget(*sector..Sector(sector.0 + u64::from(*sectors)));
                run.append(*sector, part, &plug, &writes);
                rest = others;
            }
        }
        run.submit(&plug, &writes);
        drop(plug);
        Ok(writes.wait()?)
    }
}

/// Sectors that follow each other, on their way to the device.
#[derive(Default)]
struct Run {
    start: Sector,
    bytes: Vec<u8>,
}

impl Run {
    fn append(&mut self, sector: Sector, bytes: &[u8], plug: &Plug, writes: &Batch) {
        let end = self.start.0 + (self.bytes.len() / 512) as u64;
        if end != sector.0 || self.bytes.len() + bytes.len() > WRITE_BYTES {
            self.submit(plug, writes);
            self.start = sector;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn submit(&mut self, plug: &Plug, writes: &Batch) {
        if !self.bytes.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            // As when buffers are written back: no block is torn.
            plug.submit(Bio::write(self.start, Buffer::copy_of(&bytes)).untorn().in_batch(writes));
        }
    }
}

/// First word of a block, which tells most kinds apart.
pub(super) fn magic(bytes: &[u8]) -> u32 {
    if bytes.len() < 4 { 0 } else { be32(bytes, 0) }
}
