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
    use crate::{Bio, BlockDevice, BlockError, Plug, Sector, Waiter, read_exact_at, write_all_at};

    /// A file in memory, which shares no blocks with others.
    fn in_memory(name: &str) -> File {
        let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC).unwrap());
        file.set_len(64 << 10).unwrap();
        file
    }

    /// Has two ranges that lie side by side cloned from two files.
    fn cloned(device: &Arc<dyn BlockDevice>) -> [Result<(), BlockError>; 2] {
        let plug = Plug::new(device);
        let clone = |sector| {
            let source = FileRange { file: Arc::new(in_memory("source")), offset: 0 };
            let (bio, waiter) = Bio::clone_range(Sector(sector), 8192, source).waited();
            plug.submit(bio);
            waiter
        };
        [8, 24].map(clone).map(|waiter: Waiter| waiter.wait().result)
    }

    #[test]
    fn what_cannot_clone_says_so_and_stays_as_it_is() {
        let file = || -> Arc<dyn BlockDevice> {
            let options = FileOptions::default();
            Arc::new(FileDevice::from_file(in_memory("image"), "image", &options).unwrap())
        };
        let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 10));
        for (device, asks) in [(file(), true), (memory, false)] {
            write_all_at(&*device, Sector(8), &[7; 16_384]).unwrap();
            assert_eq!(device.limits().clones_ranges, asks, "{}", device.name());
            for answer in cloned(&device) {
                let error = answer.unwrap_err();
                assert!(error.cannot_clone(), "{error}");
            }
            let mut bytes = [0; 16_384];
            read_exact_at(&*device, Sector(8), &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 7));
            // Other errors are no such refusals.
            assert!(
                !write_all_at(&*device, Sector(1 << 20), &[0; 512]).unwrap_err().cannot_clone()
            );
        }
    }
}
