//! Devices as servers meet them.

use std::sync::Arc;
use std::time::Duration;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_block::{BlockDevice, Operation};
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use uuid::Uuid;

/// How a device behaves.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// Answers at once.
    Prompt,
    /// Answers some bios later than those behind them.
    Late,
    /// Fails one write in so many.
    Failing(u64),
}

/// An empty volume.
pub fn volume(device: Arc<dyn BlockDevice>, seed: u64) -> Arc<dyn BlockDevice> {
    let bytes = device.capacity().to_bytes().unwrap();
    let plan = mkfs::plan(&MkfsOptions::new(bytes, Uuid::from_u128(seed.into()))).unwrap();
    let root = NewInode::new(FileType::Directory, 0o755);
    mkfs::finish(&mkfs::begin(&device, plan, &root).unwrap(), true).unwrap();
    device
}

/// A device above `below` that behaves like this.
pub fn with_manner(below: Arc<dyn BlockDevice>, manner: Manner, seed: u64) -> Arc<dyn BlockDevice> {
    let random = |operation, salt, one_in| Fault::new().on(operation).random(seed ^ salt, one_in);
    let faults = match manner {
        Manner::Prompt => return below,
        Manner::Late => vec![
            random(Operation::Write, 1, 7).late(Duration::from_micros(900)),
            random(Operation::Write, 2, 90).late(Duration::from_millis(6)),
            random(Operation::Read, 3, 9).late(Duration::from_micros(700)),
            random(Operation::Flush, 4, 3).late(Duration::from_millis(2)),
        ],
        Manner::Failing(one_in) => vec![random(Operation::Write, 5, one_in)],
    };
    Arc::new(FaultyDevice::new(below, faults))
}
