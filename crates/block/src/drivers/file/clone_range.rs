//! Blocks shared between files (`ioctl_ficlonerange(2)`).
#![allow(unsafe_code, reason = "a request of ioctl that no crate has in safe form")]

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

use crate::bio::FileRange;

/// Makes `length` bytes of `file` from `offset` on share the blocks of `source`. The file system has
/// a say in what both ends are multiples of.
pub(super) fn clone_range(
    file: &File,
    offset: u64,
    length: u64,
    source: &FileRange,
) -> Result<(), Errno> {
    let range = libc::file_clone_range {
        src_fd: source.file.as_raw_fd().into(),
        src_offset: source.offset,
        src_length: length,
        dest_offset: offset,
    };
    // SAFETY: both descriptors are open as long as the files are borrowed, and the kernel reads a
    // `file_clone_range`, which `range` is, and writes no memory.
    let result =
        unsafe { libc::ioctl(file.as_raw_fd(), libc::FICLONERANGE as _, &raw const range) };
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::Arc;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;
    use crate::drivers::{FileDevice, FileOptions, MemoryDevice};
    use crate::{BlockDevice, BlockError, Sector, clone_range_at, read_exact_at, write_all_at};

    /// A file in memory, which shares no blocks with others.
    fn in_memory(name: &str) -> File {
        let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC).unwrap());
        file.set_len(64 << 10).unwrap();
        file
    }

    fn cloned(device: &dyn BlockDevice) -> Result<(), BlockError> {
        let source = FileRange { file: Arc::new(in_memory("source")), offset: 0 };
        clone_range_at(device, Sector(8), 8192, source)
    }

    #[test]
    fn what_cannot_clone_says_so_and_stays_as_it_is() {
        let file = || -> Arc<dyn BlockDevice> {
            let options = FileOptions::default();
            Arc::new(FileDevice::from_file(in_memory("image"), "image", &options).unwrap())
        };
        let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 10));
        for (device, asks) in [(file(), true), (memory, false)] {
            write_all_at(&*device, Sector(8), &[7; 8192]).unwrap();
            assert_eq!(device.limits().clones_ranges, asks, "{}", device.name());
            let error = cloned(&*device).unwrap_err();
            assert!(error.cannot_clone(), "{error}: {}", error.reason);
            let mut bytes = [0; 8192];
            read_exact_at(&*device, Sector(8), &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 7));
            // Other errors are no such refusals.
            assert!(
                !write_all_at(&*device, Sector(1 << 20), &[0; 512]).unwrap_err().cannot_clone()
            );
        }
    }
}
