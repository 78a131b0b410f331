//! Writes a planned volume: static blocks, free lists, first inodes, log, and at the very end the
//! superblock.
//!
//! Order: docs/format/new-volumes.md#order-of-writes. Until the primary superblock is written the
//! device holds no file system, so a volume that was not finished cannot be taken for one that was.

use super::ag_static;
use super::property::default_property;
use crate::alloc;
use crate::attr::{self, Attribute, SetMode};
use crate::bmap::ForkWriter;
use crate::cache::BufferAddress;
use crate::error::Error;
use crate::format::{BufferKind, FileType, Namespace, Superblock, log_record};
use crate::inode::ForkKind;
use crate::ops::{NewInode, create_reserved, create_root};
use crate::units::{AgNumber, InodeNumber, Lsn};
use crate::volume::Volume;
use std::sync::Arc;
use undercroft_block::{Batch, Bio, BlockDevice, Plug, Reserved, Sector, flush, write_all_at};

/// Bytes at both ends of a device where other formats keep their magic.
const WIPED_BYTES: u64 = 128 << 10;

/// Starts a volume on a device: everything but the superblock. Files can be created in it; then
/// [`finish`] makes it a file system. `root` describes the root directory.
///
/// # Errors
/// `root` is no directory; the device is open for change, is smaller than the plan, has longer blocks than the sectors
/// of the plan, or failed. Nothing was written if not the last.
pub fn begin(
    device: &Arc<dyn BlockDevice>,
    superblock: Superblock,
    root: &NewInode<'_>,
) -> Result<Volume, Error> {
    if FileType::from_mode(root.mode) != Some(FileType::Directory) {
        return Err(Error::Invalid(format!(
            "mode {:o} of the root is not that of a directory",
            root.mode
        )));
    }
    let (block, sector) = (device.limits().block_bytes, 1 << superblock.sector_log);
    if block > sector {
        let what =
            format!("the device has blocks of {block} bytes, the volume sectors of {sector}");
        return Err(Error::Invalid(what));
    }
    let device = Reserved::new(Arc::clone(device))?;
    let mut volume = Volume::create(Arc::clone(&device), superblock);
    volume.hold(device);
    wipe(&volume)?;
    let groups = (0..volume.geometry().ag_count).map(AgNumber);
    for ag in groups.clone() {
        write_static(&volume, ag);
    }
    for ag in groups {
        let mut trans = volume.begin()?;
        trans.with_group(ag, true, alloc::fill_free_list)?;
        trans.commit(&mut [])?;
    }
    write_first_inodes(&volume, root)?;
    Ok(volume)
}

/// Clears what other formats could be recognised by, and writes the empty log.
fn wipe(volume: &Volume) -> Result<(), Error> {
    let (device, geometry) = (volume.cache().device(), volume.geometry());
    let bytes = device.capacity().to_bytes().unwrap_or(u64::MAX);
    let wanted = geometry.blocks << geometry.block_log;
    if bytes < wanted {
        return Err(Error::Invalid(format!(
            "the device has {bytes} bytes, the volume needs {wanted}"
        )));
    }
    let wiped = WIPED_BYTES.min(bytes) / 512 * 512;
    let log = geometry.sector(geometry.log_start);
    let log_bytes = u64::from(geometry.log_blocks) << geometry.block_log;
    let writes = Batch::new();
    let plug = Plug::new(device);
    let tail = Sector((bytes - wiped) / 512);
    for (start, len) in [(Sector(0), wiped), (tail, wiped), (log, log_bytes)] {
        plug.submit(Bio::write_zeroes(start, len).in_batch(&writes));
    }
    plug.flush();
    writes.wait()?;
    let record = log_record::clean_log(geometry.uuid, geometry.log_stripe_unit, 1);
    Ok(write_all_at(device.as_ref(), log, &record)?)
}

/// Puts the initial blocks of a group into the cache. The primary superblock is left to the end.
fn write_static(volume: &Volume, ag: AgNumber) {
    for block in ag_static(volume.superblock(), ag) {
        if ag.0 == 0 && block.kind == BufferKind::Superblock {
            continue;
        }
        // At most a block of 64 KiB.
        let sectors = (block.bytes.len() / 512) as u32;
        let address = BufferAddress::contiguous(block.sector, sectors);
        volume.cache().adopt(address, block.kind, block.bytes);
    }
}

/// Creates the root directory and the two realtime files.
fn write_first_inodes(volume: &Volume, root: &NewInode<'_>) -> Result<(), Error> {
    let expected = volume.geometry().root_inode;
    let mut trans = volume.begin()?;
    let mut directory = create_root(&mut trans, root)?;
    if directory.number != expected {
        // The place of the root follows from the sizes: plan and allocator must agree.
        let what = format!("the root directory should be inode {expected}");
        return Err(Error::Inode { inode: directory.number, what });
    }
    if let Some((name, value)) = default_property(&volume.geometry().features) {
        let attribute = Attribute { namespace: Namespace::Trusted, name, value };
        let mut fork = ForkWriter::new(&mut trans, &mut directory, ForkKind::Attr);
        attr::set(&mut fork, &attribute, SetMode::Create)?;
    }
    let mut bitmap = create_reserved(&mut trans, root, true)?;
    let mut summary = create_reserved(&mut trans, root, false)?;
    trans.commit(&mut [&mut directory, &mut bitmap, &mut summary])
}

/// Makes the volume a file system: writes everything back, then the superblock. With `durable`,
/// both steps end with a flush of the device. The volume can be read afterwards, not changed, and its
/// device can be opened for changes.
///
/// # Errors
/// The device failed; there is no file system on it then.
pub fn finish(volume: &Volume, durable: bool) -> Result<Superblock, Error> {
    alloc::return_all(volume)?;
    let superblock = final_superblock(volume)?;
    volume.write_back()?;
    let device = volume.cache().device().as_ref();
    if superblock.inode_max_percent != volume.superblock().inode_max_percent {
        write_copies(volume, &superblock)?;
    }
    if durable {
        flush(device)?;
    }
    let mut bytes = vec![0; volume.geometry().sector_size()];
    superblock.encode(&mut bytes);
    crate::cache::stamp(BufferKind::Superblock, &mut bytes, Lsn(0), volume.geometry());
    write_all_at(device, Sector(0), &bytes)?;
    if durable {
        flush(device)?;
    }
    volume.poison("it was finished");
    volume.release();
    Ok(superblock)
}

/// The superblock with the counters that the groups add up to (docs/format/counters.md#sums).
fn final_superblock(volume: &Volume) -> Result<Superblock, Error> {
    let mut superblock = volume.superblock().clone();
    superblock.in_progress = false;
    let counters = volume.counters()?;
    superblock.inodes = counters.inodes;
    superblock.free_inodes = counters.free_inodes;
    superblock.free_blocks = counters.free_blocks;
    superblock.inode_max_percent = share_of_inodes(&superblock);
    if !volume.geometry().features.metadir() {
        let root = superblock.root_inode.0;
        superblock.rt_bitmap_inode = InodeNumber(root + 1);
        superblock.rt_summary_inode = InodeNumber(root + 2);
    }
    Ok(superblock)
}

/// The share of the space that inodes may take, in percent: as planned, or the least that holds
/// those there are, 0 (all of it) if rounding leaves none.
///
/// A kernel makes no inode above the limit, and `mkfs.xfs -p` gives up there. A new volume that
/// holds small files mostly is as right as any other, so its limit follows the content.
fn share_of_inodes(superblock: &Superblock) -> u8 {
    let planned = superblock.inode_max_percent;
    if planned == 0 {
        return 0;
    }
    let geometry = superblock.geometry();
    let chunk = u64::from(geometry.chunk_blocks());
    // As kernels compute it: whole chunks (docs/algorithms/inodes.md#geometry).
    let limit = |percent: u8| {
        let blocks = u128::from(superblock.blocks) * u128::from(percent) / 100;
        (blocks as u64 / chunk * chunk) << geometry.inodes_per_block_log()
    };
    (planned..=100).find(|percent| limit(*percent) >= superblock.inodes).unwrap_or(0)
}

/// Writes the superblocks of all groups but the first.
fn write_copies(volume: &Volume, superblock: &Superblock) -> Result<(), Error> {
    let planned = Superblock {
        inode_max_percent: superblock.inode_max_percent,
        ..volume.superblock().clone()
    };
    for ag in (1..volume.geometry().ag_count).map(AgNumber) {
        let blocks = ag_static(&planned, ag).into_iter();
        for mut copy in blocks.filter(|block| block.kind == BufferKind::Superblock) {
            crate::cache::stamp(copy.kind, &mut copy.bytes, Lsn(0), volume.geometry());
            write_all_at(volume.cache().device().as_ref(), copy.sector, &copy.bytes)?;
        }
    }
    Ok(())
}
