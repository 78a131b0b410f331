//! A file with a volume of ours that an experiment changes through its journal.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use undercroft_block::{
    BlockDevice, Engine, FileDevice, FileOptions, SECTOR_SIZE, Sector, flush, write_all_at,
};
use undercroft_xfs::Volume;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{NewInode, Times};
use undercroft_xfs::volume::LiveOptions;
use uuid::Uuid;

use crate::error::LabError;

/// Bytes of zeros written at a time to a new image.
const CHUNK: usize = 8 << 20;

/// Size of a record of the journal: the largest, fewest writes.
const RECORD_BYTES: u32 = 256 << 10;

/// Opens the volume in the file at `path` for changes; makes one of `bytes` bytes if there is no
/// such file.
pub(crate) fn open(path: &Path, bytes: u64) -> Result<(Arc<dyn BlockDevice>, Volume), LabError> {
    if !path.exists() {
        make(path, bytes)?;
    }
    let device = device(path)?;
    let live = LiveOptions { record_bytes: RECORD_BYTES, ..LiveOptions::default() };
    let volume = Volume::open_live(Arc::clone(&device), &live)?;
    Ok((device, volume))
}

/// The file as a disk: around the page cache, if the file system that it is on can do that for
/// single sectors, which one in memory cannot. The room of the page cache, and the time to find
/// memory for it, are not to be measured; and no dirty pages stay that must be written before the
/// next iteration.
fn device(path: &Path) -> Result<Arc<dyn BlockDevice>, LabError> {
    let direct = FileOptions { direct: true, ..FileOptions::default() };
    if let Ok(device) = FileDevice::open_with(path, &direct)
        && device.limits().block_bytes == SECTOR_SIZE
    {
        return Ok(Arc::new(device));
    }
    // The thread that needs an I/O does it: all waiters here wait for the disk.
    let options = FileOptions { engine: Engine::Threads, threads: 0, ..FileOptions::default() };
    Ok(Arc::new(FileDevice::open_with(path, &options)?))
}

/// An empty volume in a new file whose every block was written, so that the file system that the
/// file is on has nothing to allocate any more.
fn make(path: &Path, bytes: u64) -> Result<(), LabError> {
    let failed = |source| LabError::File { path: path.to_owned(), source };
    let options = MkfsOptions::new(bytes, Uuid::from_u128(u128::from(fastrand::u64(..))));
    let plan = mkfs::plan(&options)?;
    let file = File::create_new(path).map_err(failed)?;
    let made = file.set_len(bytes).map_err(failed).and_then(|()| {
        let device = device(path)?;
        fill(device.as_ref(), bytes)?;
        let volume = mkfs::begin(&device, plan, &new_inode(FileType::Directory))?;
        mkfs::finish(&volume, true)?;
        Ok(())
    });
    if made.is_err() {
        // The next call would take it for an image. The error to report is the one that led here.
        let _ = std::fs::remove_file(path);
    }
    made
}

/// Writes zeros to all of the first `bytes` bytes, durably.
fn fill(device: &dyn BlockDevice, bytes: u64) -> Result<(), LabError> {
    let zeros = vec![0; CHUNK];
    for start in (0..bytes).step_by(CHUNK) {
        let len = (bytes - start).min(CHUNK as u64) as usize;
        write_all_at(device, Sector(start / SECTOR_SIZE), &zeros[..len])?;
    }
    Ok(flush(device)?)
}

/// A new inode of root, born now.
pub(crate) fn new_inode(kind: FileType) -> NewInode<'static> {
    let now = now();
    let times = Times { access: now, modification: now, change: now, creation: now };
    NewInode { times, ..NewInode::new(kind, 0o755) }
}

/// The time.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Timestamp { seconds, nanoseconds: since.subsec_nanos() }
}
