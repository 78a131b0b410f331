//! Whole disks copied: of most, most is zeros.

use std::path::Path;
use std::sync::Arc;
use undercroft_block::{
    BlockDevice, FileDevice, MemoryDevice, Sector, read_exact_at, write_all_at,
};

/// Bytes that are copied at a time.
const PART: usize = 1 << 20;

/// Copies all that is not zeros to a disk as large, which has zeros there.
pub fn copy(from: &dyn BlockDevice, to: &dyn BlockDevice) {
    let (mut bytes, zeros) = (vec![0; PART], vec![0; PART]);
    let end = from.capacity().0;
    for first in (0..end).step_by(PART / 512) {
        let len = PART.min((end - first) as usize * 512);
        read_exact_at(from, Sector(first), &mut bytes[..len]).unwrap();
        // Compared as a whole: byte by byte takes long without optimisation.
        if bytes[..len] != zeros[..len] {
            write_all_at(to, Sector(first), &bytes[..len]).unwrap();
        }
    }
}

/// Copies a disk to a sparse file, which is made, or made anew.
pub fn save(disk: &dyn BlockDevice, image: &Path) {
    let bytes = disk.capacity().to_bytes().unwrap();
    std::fs::File::create(image).unwrap().set_len(bytes).unwrap();
    copy(disk, &FileDevice::open(image, false).unwrap());
}

/// A copy of an image in memory.
pub fn in_memory(image: &Path) -> Arc<dyn BlockDevice> {
    let file = FileDevice::open(image, true).unwrap();
    let memory = MemoryDevice::new(file.capacity().to_bytes().unwrap());
    copy(&file, &memory);
    Arc::new(memory)
}
