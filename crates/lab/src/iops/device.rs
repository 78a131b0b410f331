//! The device of a variant.

use std::path::Path;
use std::sync::Arc;

use undercroft_block::experiments::OverlapOrder;
use undercroft_block::{
    BUFFER_ALIGNMENT, BlockDevice, BufferPool, Drive, Engine, FileDevice, FileOptions, Leaf,
    MemoryDevice, NullOptions, QueueOptions,
};

use super::variant::{DriverName, Variant};
use crate::error::LabError;

/// A device, and the pool that its buffers come from.
pub(super) struct TestDevice {
    pub(super) device: Arc<dyn BlockDevice>,
    pub(super) pool: BufferPool,
}

/// Opens the device of `variant`; file drivers open the file at `path`.
///
/// # Errors
/// As the driver says.
pub(super) fn open(variant: &Variant, path: &Path) -> Result<TestDevice, LabError> {
    let Variant { threads, batch, work, .. } = variant;
    let outstanding = threads * batch;
    // One more for each thread: the data it writes.
    let blocks = outstanding + threads;
    // The size that the pool charges for one: with less, a thread that has some of a batch would
    // wait for the rest.
    let block = usize::try_from(work.block_bytes).unwrap_or(usize::MAX).max(BUFFER_ALIGNMENT);
    let pool_bytes = blocks.saturating_mul(block.checked_next_power_of_two().unwrap_or(block));
    let pool = match variant.driver {
        DriverName::FileIoUring => BufferPool::registrable(pool_bytes),
        DriverName::Null | DriverName::Memory | DriverName::FileThreads => {
            BufferPool::new(pool_bytes)
        }
    };
    let depth = u32::try_from(*batch).unwrap_or(u32::MAX).max(QueueOptions::default().depth);
    let queue = QueueOptions {
        // Random writes may meet; as for fio, which of them counts does not matter here.
        order: OverlapOrder::LeftToSubmitters,
        depth,
        ..QueueOptions::default()
    };
    let file = |engine| FileOptions {
        engine,
        direct: work.direct,
        pool: Some(pool.clone()),
        // A thread that blocks for each I/O outstanding, as in fio's psync: the submitting threads,
        // if each has one outstanding, or as many others.
        threads: if *batch == 1 { 0 } else { outstanding },
        queue: queue.clone(),
        ..FileOptions::default()
    };
    let device: Arc<dyn BlockDevice> = match variant.driver {
        DriverName::Null => {
            let queue = QueueOptions { drive: Drive::Inline, ..queue };
            Arc::new(Leaf::null(NullOptions::default(), queue)?)
        }
        DriverName::Memory => Arc::new(MemoryDevice::new(work.file_bytes)),
        DriverName::FileIoUring => Arc::new(FileDevice::open_with(path, &file(Engine::Uring))?),
        DriverName::FileThreads => Arc::new(FileDevice::open_with(path, &file(Engine::Threads))?),
    };
    Ok(TestDevice { device, pool })
}

/// Whether the submitters of `variant` drive a queue of their own.
pub(super) fn is_claimed(variant: &Variant) -> bool {
    match variant.driver {
        DriverName::Null | DriverName::Memory | DriverName::FileIoUring => true,
        DriverName::FileThreads => variant.batch == 1,
    }
}
