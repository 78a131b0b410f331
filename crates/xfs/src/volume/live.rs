//! What a volume must be to be changed through its journal.

use super::Volume;
use crate::cache::{BufferAddress, BufferRef, MetaBuffer};
use crate::error::Error;
use crate::format::{BufferKind, Features2};
use crate::inode::cluster_unit;
use crate::ops;
use undercroft_block::{Sector, read_exact_at};

/// How a volume is opened for changes.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Size of the buffers in which records of the journal are assembled, in bytes: a power of two
    /// from 32 KiB, which suits the kernel best (it loses records when the size changes between a
    /// crash and the next mount), to 256 KiB. A stripe unit of the journal may ask for more.
    pub record_bytes: u32,
    /// Bytes of files that may be newer in memory than on the device. Whoever writes more waits.
    pub dirty_bytes: u64,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self { record_bytes: 32 << 10, dirty_bytes: 64 << 20 }
    }
}

/// Refuses volumes that this version cannot change without losing something.
pub(super) fn check(volume: &Volume) -> Result<(), Error> {
    let (superblock, geometry) = (volume.superblock(), volume.geometry());
    let features = &geometry.features;
    let unknown = features.unknown_ro_compat;
    let lazy = features.features2.contains(Features2::LAZYSBCOUNT);
    let refused = [
        (!features.crc, "it has version 4 of the format, which can only be read"),
        (superblock.needs_repair(), "it needs `xfs_repair` first"),
        (geometry.log_start.is_null(), "its journal is on another device"),
        (superblock.rt_blocks > 0, "it has a realtime device, which is not maintained"),
        (features.metadir(), "it has a metadata directory, which is not maintained"),
        (features.zoned(), "it is zoned, which is not maintained"),
        (features.ascii_ci(), "its names ignore case, which is not maintained"),
        (!lazy, "its counters are not lazy, as version 5 of the format asks for"),
        (
            cluster_unit(geometry) != geometry.cluster_blocks(),
            "its inode chunks are not aligned to clusters, as the journal needs",
        ),
        (volume.cache().device().is_read_only(), "the device is read-only"),
    ];
    if let Some((_, what)) = refused.into_iter().find(|(refused, _)| *refused) {
        return Err(Error::ReadOnly(what.into()));
    }
    let journal = features.unknown_log_incompat();
    if journal != 0 {
        let what = format!("its journal has features {journal:#x} that this version does not know");
        return Err(Error::ReadOnly(what));
    }
    if unknown != 0 {
        let what = format!("it uses features {unknown:#x} that this version can only read");
        return Err(Error::ReadOnly(what));
    }
    Ok(())
}

/// Offset of the quota flags in the superblock (format reference, section 2.1).
const QUOTA_FLAGS_OFFSET: usize = 176;

/// Says in the superblock that nobody counts who uses what: from here on that would be wrong. A
/// kernel does the same when it mounts without quotas, and counts anew when it mounts with them.
///
/// # Errors
/// The journal or the device failed.
pub(super) fn switch_quotas_off(volume: &Volume) -> Result<(), Error> {
    let mut trans = volume.begin()?;
    ops::change_superblock(&mut trans, |edit| edit.put_be16(QUOTA_FLAGS_OFFSET, 0))?;
    trans.commit(&mut [])
}

/// The buffer of the primary superblock, which was verified when the volume was opened.
pub(super) fn superblock_buffer(volume: &Volume) -> Result<BufferRef, Error> {
    let mut bytes = vec![0; volume.geometry().sector_size()];
    read_exact_at(volume.cache().device().as_ref(), Sector(0), &mut bytes)?;
    let address = BufferAddress::contiguous(Sector(0), (bytes.len() / 512) as u32);
    let buffer = MetaBuffer::new(address, BufferKind::Superblock, bytes);
    volume.cache().admit(&buffer);
    Ok(buffer)
}
