//! Volume managers: what is in a disk is found, and the devices that are made of it are read.
//!
//! The first byte chooses a disk and whether its checksums are made right again after patches of its
//! metadata.

mod luks;
mod lvm;
mod raid;

use crate::input::{Change, Input, Patches, overwrite};
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{BlockDevice, MemoryDevice, Sector, read_buffer, write_all_at};
use undercroft_container::layers::{Choice, Depth, Layers};
use undercroft_container::luks::Keys;

/// Bytes that may be read of one disk: the front of each device, and metadata.
const BUDGET: u64 = 64 << 20;
/// The first byte, where checksums stay as they are.
const UNREPAIRED: u8 = 0x80;

/// A disk with something that other devices are made of.
struct Disk {
    bytes: Vec<u8>,
    /// Where its metadata is.
    pieces: Vec<Range<usize>>,
    /// Makes the checksums right.
    repair: fn(&mut [u8]),
}

const DISKS: [fn() -> Disk; 5] =
    [lvm::disk, raid::version1, raid::version0, luks::version1, luks::version2];

/// An input for each disk.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    (0..DISKS.len()).map(|number| vec![number as u8]).collect()
}

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let flags = input.byte();
    let mut disk = DISKS[usize::from(flags & !UNREPAIRED) % DISKS.len()]();
    for patch in Patches::new(input) {
        if let Change::Bytes(bytes) = patch.change {
            let piece = disk.pieces[usize::from(patch.piece) % disk.pieces.len()].clone();
            overwrite(&mut disk.bytes[piece], patch.offset, bytes);
        }
    }
    if flags & UNREPAIRED == 0 {
        (disk.repair)(&mut disk.bytes);
    }
    let device = Arc::new(MemoryDevice::new(disk.bytes.len() as u64));
    write_all_at(&*device, Sector(0), &disk.bytes).expect("the disk has these sectors");
    walk(&device);
}

/// Looks at a disk, and reads both ends of all devices in it; returns how many there are, and one more for
/// what is encrypted.
fn walk(device: &Arc<MemoryDevice>) -> usize {
    let before = device.statistics().bytes_read;
    let disk: Arc<dyn BlockDevice> = Arc::clone(device) as _;
    let mut found = 0;
    if let Ok(layers) = Layers::look(&disk, &Choice::default(), Depth::Everything, &Keys::default())
    {
        for device in layers.nodes().iter().filter_map(|node| node.device.as_ref().ok()) {
            let Some(last) = device.capacity().0.checked_sub(1) else { continue };
            for sector in [0, last] {
                drop(
                    read_buffer(&**device, Sector(sector), 512).map_err(|error| error.to_string()),
                );
            }
        }
        drop(layers.select(&Choice::default(), false).map_err(|why| why.to_string()));
        found = layers.nodes().len() + usize::from(layers.is_locked());
    }
    let read = device.statistics().bytes_read - before;
    assert!(read <= BUDGET, "runaway reads: {read} bytes");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disks_have_devices() {
        for disk in DISKS {
            let bytes = disk().bytes;
            let device = Arc::new(MemoryDevice::new(bytes.len() as u64));
            write_all_at(&*device, Sector(0), &bytes).unwrap();
            assert!(walk(&device) > 1);
        }
        seeds().iter().for_each(|seed| run(seed));
    }
}
